"""Facts about this machine: CPUs, virtualization, write access."""
