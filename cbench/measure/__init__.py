"""Measure a workload: counters, the worker process and its runner."""
