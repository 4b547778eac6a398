"""What reports share: figures, SVG, page parts."""
