"""Several reporters as one: spans, counters and logs of the same reads and changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, cast

from rowsieve.errors import InvalidInput, repr_of
from rowsieve.metrics.reports import Report, Reporter, send
from rowsieve.metrics.running_operations import Observer, Operation

_LOG: Final = logging.getLogger("rowsieve")


class SeveralReporters:
    """Gives each report, beginning and end to all reporters, in their order.

    What one of them raises is logged, and does not keep it from the others.
    """

    def __init__(self, *reporters: Reporter) -> None:
        for each in reporters:
            if not callable(getattr(each, "report", None)):
                raise InvalidInput(
                    f"SeveralReporters: {repr_of(each)} has no method report(); give objects such "
                    "as LoggingReporter()"
                )
        self._reporters = reporters
        self._observers = [
            cast("Observer", each) for each in reporters if callable(getattr(each, "begun", None))
        ]

    def report(self, report: Report) -> None:
        """Send the report to all."""
        for each in self._reporters:
            send(each, report)

    def begun(self, operation: Operation) -> Callable[[], None]:
        """Tell those that observe; return what undoes their changes, the last first."""
        undone = ExitStack()
        for each in self._observers:
            try:
                undone.callback(each.begun(operation))
            except Exception:
                _LOG.exception("%s failed on a beginning", type(each).__name__)
        return undone.close

    def ended(self, operation: Operation, error: BaseException | None) -> None:
        """Tell those that observe."""
        for each in self._observers:
            try:
                each.ended(operation, error)
            except Exception:
                _LOG.exception("%s failed on an end", type(each).__name__)
