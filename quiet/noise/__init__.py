"""Find the causes of a CPU's interruptions: a detector in C records gaps, and the kernel's trace or counts explain
them.
"""
