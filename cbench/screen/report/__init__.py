"""The report of a screening experiment as a page."""
