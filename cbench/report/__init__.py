"""Provide the common parts of reports: figures, SVG, pages, text."""
