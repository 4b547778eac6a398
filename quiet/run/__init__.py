"""`quiet run`: a front, which remains the caller's process, and a helper, which changes the host as root."""
