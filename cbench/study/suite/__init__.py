"""Run suites, which are existing benchmarks under one harness, as the tests of a study."""
