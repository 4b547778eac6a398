"""Access to the host: files, programs and held devices, under a root that is an argument."""

FOLDER = "/run/quiet"  # /run ends with the boot, as the state it describes does
