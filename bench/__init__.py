"""Figures: what things cost, measured on the machine at hand. `python -m bench` prints them."""
