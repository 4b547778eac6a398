"""The common parts of reports: figures, SVG, page parts."""
