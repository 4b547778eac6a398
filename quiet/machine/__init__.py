"""Facts about this machine: CPUs, virtualization, and write access."""
