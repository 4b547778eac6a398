"""Measures commands: one process per trial."""
