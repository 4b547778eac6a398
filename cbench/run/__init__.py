"""The commands `cbench run`, `cbench list` and `cbench explain`."""
