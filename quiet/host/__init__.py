"""Access to the host: files, programs and held devices, under a root that is an argument."""
