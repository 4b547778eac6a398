"""`python -m quiet`."""

from quiet.cli import main

main()
