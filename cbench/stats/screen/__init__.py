"""The statistics of screening experiments: arrays in, frozen results out."""
