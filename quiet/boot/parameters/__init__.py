"""Kernel parameters: the command line, the table of known parameters, and merging."""
