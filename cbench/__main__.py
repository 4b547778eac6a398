"""`python -m cbench` is the `cbench` command."""

from cbench.start import main

main()
