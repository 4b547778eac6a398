"""The command line of quiet."""
