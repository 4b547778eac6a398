"""Statistics of order studies: arrays in, frozen results out."""
