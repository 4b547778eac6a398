"""Columns from and to CSV and Parquet files."""
