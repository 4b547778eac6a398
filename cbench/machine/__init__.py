"""Describe the measured machine: topology, TLBs, counters, passport."""
