"""Scheduling controller (seed 002): node, volume group and thin pool for every replica of a volume."""
