"""Read the numbers of a trial by instruments."""
