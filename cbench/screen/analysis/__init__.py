"""The analysis of a screening experiment."""
