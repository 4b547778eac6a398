"""Measure commands, with one process per trial."""
