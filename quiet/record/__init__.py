"""Record a host as a tree of files, with private data redacted."""
