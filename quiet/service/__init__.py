"""Generate quiet's systemd units, and install the unit that applies a profile at boot."""
