"""Who interrupts a CPU: a detector in C, the kernel's own account of what ran meanwhile, and the merge of both."""
