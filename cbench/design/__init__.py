"""Designs: which trials, in which order. Nothing here runs anything."""
