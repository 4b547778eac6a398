"""The command `cbench screen validate`."""
