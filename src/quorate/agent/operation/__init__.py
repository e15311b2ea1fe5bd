"""The DRBDResourceOperation controller of a node: one command, once, with its guards."""
