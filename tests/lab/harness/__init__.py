"""Builds and boots machines. It imports neither the programs for the guests nor the tests."""
