"""`python -m quiet`."""

from quiet.cli.start import main

main()
