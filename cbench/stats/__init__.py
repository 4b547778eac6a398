"""Statistics as pure functions: numbers in, frozen results out; nothing here knows where a number came from."""
