"""Compute the statistics of screening experiments, functions that take arrays and return frozen dataclasses."""
