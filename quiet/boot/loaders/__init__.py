"""Boot loaders, and the files in which each stores the command line."""
