"""Knobs: one line of knowledge about each setting, by family."""
