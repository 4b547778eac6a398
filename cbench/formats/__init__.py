"""Readers of results, one per format."""
