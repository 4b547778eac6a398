"""The remedy for each cause of noise, or why there is none."""
