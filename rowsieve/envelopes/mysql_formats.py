"""The events of Maxwell's daemon and of Canal, which read the log of MySQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from rowsieve.envelopes.actions import EventAction, Skipped
from rowsieve.envelopes.event_orders import EventOrder, OrderField, log_position, moment
from rowsieve.envelopes.formats import Format, Meaning, Unpacked, never, one_each
from rowsieve.envelopes.row_structs import RowType
from rowsieve.envelopes.values.text_rules import TextRules

_DDL: Final[dict[str, Meaning]] = dict.fromkeys(
    (
        "table-create",
        "table-alter",
        "table-drop",
        "database-create",
        "database-alter",
        "database-drop",
    ),
    Skipped.SCHEMA_CHANGE,
)


def _maxwell_message(row: RowType) -> Any:
    return msgspec.defstruct(
        "Maxwell",
        [
            ("type", str | None, None),
            ("database", Any, None),
            ("table", Any, None),
            ("data", row.struct | None, None),
            ("old", row.struct | None, None),
            ("ts", Any, None),
            ("xid", Any, None),
            ("xoffset", Any, None),
            ("commit", Any, None),
            ("position", Any, None),
        ],
        gc=False,
    )


# The last row of a transaction has "commit": true, and no xoffset.
_XOFFSET: Final = OrderField("xoffset", "xoffset", optional=True, last="commit")
MAXWELL: Final = Format(
    name="maxwell",
    message=_maxwell_message,
    unpack=one_each,
    op="type",
    meanings={
        "insert": EventAction.WRITE,
        "update": EventAction.WRITE,
        "delete": EventAction.DELETE,
        "bootstrap-insert": EventAction.WRITE,
        "bootstrap-start": Skipped.BOOTSTRAP,
        "bootstrap-complete": Skipped.BOOTSTRAP,
        "heartbeat": Skipped.HEARTBEAT,
        **_DDL,
    },
    after="data",
    before="old",
    deleted="data",
    before_is_partial=True,
    source=("database", "table"),
    orders=(
        EventOrder(
            (
                OrderField("position", "position", log_position),
                _XOFFSET,
            )
        ),
        EventOrder(
            (OrderField("xid", "xid"), _XOFFSET),
            weak="transaction numbers, which are given when a transaction begins",
        ),
        EventOrder(
            (OrderField("ts", "ts", moment, unit="s"),), weak="seconds of the source's clock"
        ),
    ),
    rules=TextRules(bytes_="base64", nested_json=True),
    unmarked=never,
)


class CanalChange(msgspec.Struct, gc=False):
    """One row of a message of Canal."""

    type: str | None
    database: Any
    table: Any
    data: Any
    old: Any
    es: Any
    id: Any
    place: int
    commit_ts: Any


def _canal_message(row: RowType) -> Any:
    tidb = msgspec.defstruct(
        "Tidb", [("commit_ts", Any, msgspec.field(default=None, name="commitTs"))]
    )
    return msgspec.defstruct(
        "Canal",
        [
            ("type", str | None, None),
            ("database", Any, None),
            ("table", Any, None),
            ("data", list[row.struct] | None, None),  # type: ignore[name-defined]
            ("old", list[row.struct | None] | None, None),  # type: ignore[name-defined]
            ("es", Any, None),
            ("id", Any, None),
            ("is_ddl", bool | None, msgspec.field(default=None, name="isDdl")),
            ("tidb", tidb | None, msgspec.field(default=None, name="_tidb")),
        ],
        gc=False,
    )


def _canal_changes(messages: Sequence[Any], _row: RowType) -> Unpacked:
    """Each row of a message is an entry; so is a change of the schema."""
    objects: list[Any] = []
    places: list[int] = []
    failures: dict[int, Exception] = {}
    for place, each in enumerate(messages):
        word = "ddl" if each.is_ddl and str(each.type).lower() != "truncate" else each.type
        rows = [None] if each.is_ddl or each.data is None else each.data
        old = each.old or [None] * len(rows)
        if len(old) != len(rows) or not rows:
            failures[place] = ValueError(
                f"{len(rows)} rows in 'data' and {len(each.old or ())} in 'old'"
            )
            continue
        commit_ts = None if each.tidb is None else each.tidb.commit_ts
        named = (word, each.database, each.table)
        for at, (row, before) in enumerate(zip(rows, old, strict=True)):
            objects.append(CanalChange(*named, row, before, each.es, each.id, at, commit_ts))
        places += [place] * len(rows)
    return Unpacked(objects, places, failures=failures)


CANAL: Final = Format(
    name="canal",
    message=_canal_message,
    unpack=_canal_changes,
    op="type",
    meanings={
        "insert": EventAction.WRITE,
        "update": EventAction.WRITE,
        "delete": EventAction.DELETE,
        "init": EventAction.WRITE,
        "truncate": EventAction.TRUNCATE,
        "ddl": Skipped.SCHEMA_CHANGE,
        "query": Skipped.SCHEMA_CHANGE,
        "tidb_watermark": Skipped.HEARTBEAT,
    },
    after="data",
    before="old",
    deleted="data",
    before_is_partial=True,
    source=("database", "table"),
    orders=(
        EventOrder((OrderField("commit_ts", "commit_ts"),)),
        EventOrder(
            (
                OrderField("es", "es", unit="ms"),
                OrderField("id", "id"),
                OrderField("place", "place"),
            )
        ),
    ),
    rules=TextRules(bytes_="latin-1", booleans_in_text=True),
    unmarked=never,
)
