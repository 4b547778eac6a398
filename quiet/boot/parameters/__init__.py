"""Kernel parameters: the command line, the known words, and merging."""
