"""Measure inside the kernel module, with interrupts off."""
