"""The command `cbench sweep`."""
