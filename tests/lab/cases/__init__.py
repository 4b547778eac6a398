"""The tests: each boots a machine of the harness, runs a program of `guest` in it, and judges the result."""
