"""Knobs, which describe the host's settings, by family."""
