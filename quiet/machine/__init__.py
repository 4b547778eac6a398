"""What this machine is: CPUs, virtualization, what may be written."""
