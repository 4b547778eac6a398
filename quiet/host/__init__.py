"""Access to a host: files, programs and held devices, below a root that is passed as an argument."""

FOLDER = "/run/quiet"  # like the state that it describes, /run does not survive a reboot
