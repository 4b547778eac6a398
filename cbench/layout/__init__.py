"""`cbench layout`, which measures how much a program's time depends on the memory layout of its build."""
