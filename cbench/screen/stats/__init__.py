"""Compute the statistics of screening experiments, from arrays to frozen results."""
