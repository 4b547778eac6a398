"""Define the instruments; an instrument reads one number from a trial."""
