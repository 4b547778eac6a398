"""Compare the command-line interfaces of two checkouts: JSON, exit codes, text, help and files."""
