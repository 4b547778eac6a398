"""Screening experiments: find the factors that affect performance, from an experiment file to an analysis."""
