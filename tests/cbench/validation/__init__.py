"""Tests of cbench.validation."""
