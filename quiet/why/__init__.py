"""`quiet why`: run a command unchanged and report its interruptions."""
