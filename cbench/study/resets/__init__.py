"""Resets between runs."""
