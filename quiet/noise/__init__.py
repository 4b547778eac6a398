"""Find what interrupts a CPU: a detector in C, the kernel's own account of what ran at that time, and their merge."""
