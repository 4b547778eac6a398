"""Render the report of a screening experiment as an HTML page."""
