"""Designs: which treatments are run, and what they can test."""
