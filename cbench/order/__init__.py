"""Order-dependence studies: input, analysis, tables and pages."""
