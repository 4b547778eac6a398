"""Run a screening experiment: set levels, read them back, and restore them."""
