"""Reading the data of a screening experiment."""
