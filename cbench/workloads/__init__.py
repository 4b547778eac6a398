"""Define the built-in workloads, one file per family."""
