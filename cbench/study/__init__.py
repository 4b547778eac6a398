"""Studies: read a study's file, run its trials and store them."""
