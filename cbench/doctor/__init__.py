"""Determine the smallest difference that can be detected on this machine."""
