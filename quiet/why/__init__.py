"""`quiet why`: runs a command unchanged and reports what disturbed it."""
