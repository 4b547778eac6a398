"""Screening experiments: which factors matter, from a file that declares them to every trial in a store."""
