"""`python -m quiet`."""

from quiet.start import main

main()
