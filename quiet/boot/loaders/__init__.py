"""Boot loaders, and the files in which each keeps the command line."""
