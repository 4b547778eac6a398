"""Read columns of CSV and Parquet files."""
