"""Find the causes of a CPU's interruptions. A detector in C records gaps; the kernel's trace or counts explain them."""
