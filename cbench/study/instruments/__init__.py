"""Instruments: what a trial reads."""
