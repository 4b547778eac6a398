"""`python -m quiet`."""

from quiet.cli.start import main

if __name__ == "__main__":
    main()
