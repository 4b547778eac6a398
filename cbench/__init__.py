"""cbench: measures C code to the cycle, with the provenance of every trial."""
