"""The command `cbench compare`."""
