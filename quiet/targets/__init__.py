"""Targets: every piece of host state is a named string that can be read and written."""
