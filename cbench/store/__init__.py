"""The SQLite file that holds trials."""
