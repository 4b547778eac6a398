"""`python -m cbench` is the `cbench` command."""

from cbench.cli import main

main()
