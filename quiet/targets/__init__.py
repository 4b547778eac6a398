"""Targets: named pieces of host state, which are read and written as strings."""
