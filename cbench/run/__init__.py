"""The command `cbench run` and `cbench list`."""
