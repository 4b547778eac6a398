"""`quiet why`: runs a command as it is and reports what disturbed it."""
