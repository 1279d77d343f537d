"""The command line, `rowsieve`: a thin layer over the Python API.

Results go to stdout, progress and errors to stderr; an error is one line and an exit code.
"""

from __future__ import annotations

import sys

from rowsieve.cli.interrupts import leave_on_interrupt
from rowsieve.cli.standard_streams import open_standard_streams

__all__ = ["main"]

_NEEDS = ("typer", "rich")  # the extra `cli`


def main() -> None:
    """Run the command line and exit with its exit code; 3 if its packages are not installed."""
    open_standard_streams()
    leave_on_interrupt("nothing was changed")
    try:
        from rowsieve.cli import app

        app.main()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDS:
            raise
        sys.stderr.write(
            f"rowsieve: MissingExtra: the command line needs {' and '.join(_NEEDS)}: "
            "pip install 'rowsieve[cli]'\n"
        )
        raise SystemExit(3) from None
