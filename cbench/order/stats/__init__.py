"""Compute the statistics of order studies, from arrays to frozen results."""
