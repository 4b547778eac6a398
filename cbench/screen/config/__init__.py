"""Read the file of a screening experiment and derive its plan."""
