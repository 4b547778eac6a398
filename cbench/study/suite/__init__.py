"""Suites: somebody else's benchmarks under one harness, as the tests of a study."""
