"""The kernel's build configuration: the fragments of kernel-configs/, and which of them the running kernel has."""
