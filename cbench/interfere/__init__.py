"""The command `cbench interfere`."""
