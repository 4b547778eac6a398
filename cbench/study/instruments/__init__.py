"""Define the instruments; an instrument reads one number of a trial."""
