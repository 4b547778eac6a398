"""The command `cbench step`."""
