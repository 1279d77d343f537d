"""The command line, `rowsieve`: a thin layer over the Python API that adds no meaning of its own.

Answers go to stdout, progress and errors to stderr; an error is one line and an exit code.
"""

from rowsieve.cli.app import main

__all__ = ["main"]
