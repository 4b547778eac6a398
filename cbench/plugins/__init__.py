"""Plugins of pytest and pyperf: who interrupted their benchmarks."""
