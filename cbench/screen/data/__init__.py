"""Read the data of a screening experiment."""
