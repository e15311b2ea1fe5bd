"""The DRBDResource controller of a node: snapshot, pure decision, and the answers its host gives."""
