"""quiet: make a Linux host quiet, verify it, and restore it exactly as it was found."""

__version__ = "0.1.0"
