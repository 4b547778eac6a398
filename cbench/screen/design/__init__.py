"""Construct designs: the treatments to run, and the effects that they can test."""
