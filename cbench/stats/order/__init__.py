"""The statistics of order-dependence studies: arrays in, frozen results out."""
