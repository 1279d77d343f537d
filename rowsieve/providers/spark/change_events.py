"""Applies events of a change data capture tool in a DataFrame, in batch and in `foreachBatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowsieve import engines

if TYPE_CHECKING:
    from rowsieve.arguments.annotations import Metadata, Token


def apply_events(
    frame: Any,
    table: Any,
    *,
    format: str,  # noqa: A002 - as of `Table.apply_events`
    token: Token | None = None,
    metadata: Metadata | None = None,
    **options: Any,
) -> Any:
    """Apply the events in a DataFrame to a table in one commit, as `Table.apply_events` does.

    The frame has a column `value` with JSON text, or the columns of the envelope; it is collected
    on the driver. `options` are the others of that method, such as `source`, `times`, `on_bad` and
    `schema_mode`. In the function of `foreachBatch` a call without a token has that of its batch.
    """
    engines.spark()  # MissingExtra without PySpark
    from rowsieve.providers.spark.writes.applied_events import apply_frame  # noqa: PLC0415 - PySpark

    return apply_frame(frame, table, token, metadata, {"format": format, **options})
