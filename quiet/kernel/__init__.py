"""What the kernel was built with: the fragments of kernel-configs/, and which of them the running kernel has."""
