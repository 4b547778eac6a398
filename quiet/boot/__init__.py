"""Kernel command-line settings that survive a reboot."""
