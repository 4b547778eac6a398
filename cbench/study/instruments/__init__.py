"""Instruments: how a trial is read."""
