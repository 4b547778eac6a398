"""Measures commands: a process a trial."""
