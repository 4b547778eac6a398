"""Studies: from a file that says what to run, to every trial in a store."""
