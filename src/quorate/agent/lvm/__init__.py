"""The LVM side of a node, for clusters without an LVM operator: LVMLogicalVolume and LVMVolumeGroup (switchable)."""
