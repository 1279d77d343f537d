"""The events of AWS Database Migration Service: its JSON messages, and the rows of its files."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from rowsieve.envelopes.actions import EventAction, Skipped
from rowsieve.envelopes.event_orders import EventOrder, OrderField, Within, moment
from rowsieve.envelopes.formats import Format, Meaning, one_each
from rowsieve.envelopes.row_structs import RowType
from rowsieve.envelopes.values.text_rules import TextRules

_CLOCK: Final = "times of commits, of which two changes of a row may have the same"


class Metadata(msgspec.Struct, gc=False, rename="kebab"):
    """What a message says of its change."""

    operation: str | None = None
    record_type: Any = None
    timestamp: Any = None
    commit_timestamp: Any = None
    stream_position: Any = None
    transaction_id: Any = None
    transaction_record_id: Any = None
    schema_name: Any = None
    table_name: Any = None


def _message(row: RowType) -> Any:
    return msgspec.defstruct(
        "Dms",
        [
            ("data", row.struct | None, None),
            ("before_image", row.struct | None, msgspec.field(default=None, name="before-image")),
            ("metadata", Metadata, msgspec.field(default_factory=Metadata)),
        ],
        gc=False,
    )


def _control(message: Any) -> Meaning | None:
    return Skipped.SCHEMA_CHANGE if message.metadata.record_type == "control" else None


_DDL: Final[dict[str, Meaning]] = dict.fromkeys(
    (
        "create-table",
        "drop-table",
        "rename-table",
        "add-column",
        "drop-column",
        "rename-column",
        "change-columns",
        "column-type-change",
    ),
    Skipped.SCHEMA_CHANGE,
)

DMS: Final = Format(
    name="dms",
    message=_message,
    unpack=one_each,
    op="metadata.operation",
    meanings={
        "load": EventAction.WRITE,
        "insert": EventAction.WRITE,
        "update": EventAction.WRITE,
        "delete": EventAction.DELETE,
        "begin-transaction": Skipped.TRANSACTION,
        "commit-transaction": Skipped.TRANSACTION,
        **_DDL,
        "truncate-table": EventAction.TRUNCATE,
    },
    after="data",
    before="before_image",
    deleted="data",
    before_is_partial=True,
    source=("metadata.schema_name", "metadata.table_name"),
    orders=(
        EventOrder(
            (
                OrderField("commit-timestamp", "metadata.commit_timestamp", moment, unit="us"),
                OrderField("transaction-record-id", "metadata.transaction_record_id"),
            ),
            within=Within(
                "are of two transactions with the same commit-timestamp", "metadata.transaction_id"
            ),
        ),
        EventOrder(
            (OrderField("timestamp", "metadata.timestamp", moment, unit="us"),), weak=_CLOCK
        ),
    ),
    rules=TextRules(bytes_="base64"),
    unmarked=_control,
)

DMS_FILES: Final = Format(
    name="dms-files",
    message=lambda row: row.struct,
    unpack=one_each,
    op="Op",
    meanings={"i": EventAction.WRITE, "u": EventAction.WRITE, "d": EventAction.DELETE},
    after="",
    before="",
    deleted="",
    source=(),
    orders=(
        EventOrder((OrderField("AR_H_CHANGE_SEQ", "AR_H_CHANGE_SEQ", optional=True),)),
        EventOrder(
            (OrderField("AR_H_TIMESTAMP", "AR_H_TIMESTAMP", moment, unit="us"),), weak=_CLOCK
        ),
        EventOrder(
            (OrderField("AR_H_COMMIT_TIMESTAMP", "AR_H_COMMIT_TIMESTAMP", moment, unit="us"),),
            weak=_CLOCK,
        ),
    ),
    rules=TextRules(bytes_="hex"),
    unmarked=lambda _row: EventAction.WRITE,
    beside=True,
    extra=("Op", "AR_H_CHANGE_SEQ", "AR_H_TIMESTAMP", "AR_H_COMMIT_TIMESTAMP"),
)
