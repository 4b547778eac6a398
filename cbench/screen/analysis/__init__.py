"""Analyze screening experiments."""
