"""Statistics of screening experiments: arrays in, frozen results out."""
