"""Order-dependence studies: what is read, what is said, what is drawn."""
