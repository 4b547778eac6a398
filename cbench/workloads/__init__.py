"""The built-in workloads, one file a family."""
