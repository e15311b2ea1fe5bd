"""Figures on a real API server: `make bench-kube`."""
