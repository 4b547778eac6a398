"""`quiet run`: a front, which stays the caller's process, and a helper, which changes the host as root."""
