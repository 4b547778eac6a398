"""Analyze order-dependence studies, and show the results as tables and pages."""
