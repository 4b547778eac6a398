"""Damaged and hostile input for both commands: `make fuzz`, or `python -m tests.fuzz --help`."""
