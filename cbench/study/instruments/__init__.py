"""Instruments, which read the numbers of a trial."""
