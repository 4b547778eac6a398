"""The kernel's build configuration: the fragments of kernel-configs/, and a check of the running kernel."""
