"""Boot loaders and the files that contain the kernel command line."""
