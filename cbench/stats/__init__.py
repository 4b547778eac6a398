"""Statistics as pure functions: numbers in, frozen results out."""
