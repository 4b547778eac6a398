"""The command `cbench export`."""
