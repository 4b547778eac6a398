"""The systemd unit that applies a profile at boot."""
