"""Preview: the real decision code run forward on a copy of a volume, with the simulated kernel on virtual time."""
