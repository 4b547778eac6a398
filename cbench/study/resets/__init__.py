"""Resets: what happens between runs."""
