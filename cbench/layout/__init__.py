"""`cbench layout`: how much of a program's time is the layout of its build."""
