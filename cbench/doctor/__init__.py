"""Says how small a difference can be seen on this machine."""
