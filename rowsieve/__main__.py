"""`python -m rowsieve`: the command line."""

from rowsieve.cli import main

if __name__ == "__main__":
    main()
