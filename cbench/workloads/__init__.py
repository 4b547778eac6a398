"""The built-in workloads, one file per family."""
