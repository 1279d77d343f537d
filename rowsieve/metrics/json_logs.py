"""Log records as JSON, an object a line, with the ids of commits, scans and operations.

A record that is made while an operation runs has its id, its table and what it does, also in the
threads that work for it. A record of `LoggingReporter` has the report's fields besides.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from rowsieve.metrics.running_operations import current_operation

FIELDS: Final = "rowsieve"
"""The attribute of a log record that has the fields of a report."""


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON; values that JSON lacks become text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; it must run in the thread that logs, as in all handlers but a queue."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if (operation := current_operation()) is not None:
            fields |= {
                "operation_id": operation.id,
                "operation": operation.name,
                "kind": operation.kind,
                "table": operation.table,
                **operation.log_fields,
            }
        fields |= getattr(record, FIELDS, {})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str, ensure_ascii=False)
