"""Provide plugins for pytest and pyperf that report interruptions of benchmarks."""
