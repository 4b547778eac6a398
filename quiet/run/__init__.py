"""`quiet run`: a front that stays the caller's process, and a helper that changes the host as root."""
