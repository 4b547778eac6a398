"""Running a screening experiment: levels are set, read back and restored."""
