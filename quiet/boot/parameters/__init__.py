"""Kernel parameters: the command line, what is known of each word, and merging."""
