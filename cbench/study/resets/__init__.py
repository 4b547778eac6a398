"""Reset the host between runs."""
