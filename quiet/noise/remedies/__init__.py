"""A remedy for each cause of noise, or the reason why there is none."""
