"""Common parts of reports: figures, SVG, page parts."""
