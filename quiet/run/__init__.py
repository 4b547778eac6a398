"""Implement `quiet run` as two processes: a front, run by the caller, and a helper, which changes the host as root."""
