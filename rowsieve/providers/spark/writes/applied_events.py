"""Applies events of a change data capture tool that a DataFrame has, by the process that commits.

Soundness: which event of a key is the newest depends on all events of the batch, and on the table.
So the events are collected and applied in one commit by the method of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsieve.errors import InvalidInput
from rowsieve.providers.spark.frames import check_rows
from rowsieve.providers.spark.job_errors import own_error
from rowsieve.providers.spark.writes.batch_tokens import labels_of

if TYPE_CHECKING:
    from rowsieve.arguments.annotations import Metadata, Token


def apply_frame(
    frame: Any, table: Any, token: Token | None, metadata: Metadata | None, options: dict[str, Any]
) -> Any:
    """Apply the events of a DataFrame by `Table.apply_events` with these options."""
    check_rows(frame, "apply_events")
    if not hasattr(table, "handle"):
        raise InvalidInput(f"apply_events: table must be a Table, not {type(table).__name__}")
    with labels_of(table, frame.sparkSession, "apply", token, metadata) as labels:
        try:
            events = frame.toArrow()
        except Exception as error:
            if (known := own_error(error, f"apply_events into {table.uri}")) is not None:
                raise known from error
            raise
        arguments = {"token": labels.token, "metadata": dict(labels.metadata)}
        return table.apply_events(events, **arguments, **options)
