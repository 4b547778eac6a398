"""Run `python -m quiet` as the command `quiet`."""

from quiet.cli.start import main

if __name__ == "__main__":
    main()
