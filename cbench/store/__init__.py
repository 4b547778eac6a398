"""Store trials in an SQLite file."""
