"""Read other programs' results, with one reader per format."""
