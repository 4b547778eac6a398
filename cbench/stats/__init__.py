"""Statistics as pure functions, from numbers to frozen results."""
