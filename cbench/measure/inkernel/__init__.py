"""Measure in the kernel module, with interrupts off."""
