"""Readers of results, one a format."""
