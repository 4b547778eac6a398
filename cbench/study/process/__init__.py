"""How a study starts, tags and ends processes."""
