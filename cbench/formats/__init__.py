"""Readers of other programs' results, one per format."""
