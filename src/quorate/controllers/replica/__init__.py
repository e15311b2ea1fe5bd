"""Replica controller (seed 001): backing volume, DRBD resource and reported state of one replica."""
