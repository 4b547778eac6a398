"""Implement `quiet watch`, which runs continuously and reports or repairs drift from the applied profile."""
