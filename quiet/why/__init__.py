"""Implement `quiet why`: run a command and report its interruptions, without changing the host's settings."""
