"""Studies: from a file that describes them to every trial in a store."""
