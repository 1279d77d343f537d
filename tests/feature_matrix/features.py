"""The features: how a table with each is made, and what must hold of it ever after.

A feature that joins is a function that makes its table and an entry of `FEATURES`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import ConstraintViolation
from tests.feature_matrix import later_features as later
from tests.feature_matrix.feature import (
    COUNT,
    FIRST,
    LAST,
    QUESTIONS,
    SECOND,
    TINY,
    Feature,
    Row,
    keyed,
)
from tests.golden import story
from tests.golden.test_golden import FOLDER, GOLDEN


def _without(gone: Callable[[int], bool]) -> list[Row]:
    return [row for row in LAST.values() if not gone(row["id"])]


def tombstones(folder: str) -> None:
    table = keyed(folder)
    table.delete(keys=pa.table({"id": [0, 3, 23]}))
    table.delete("id % 5 = 1")


def vectors(folder: str) -> None:
    table = keyed(folder, visibility="eager")
    table.delete("id % 5 = 1")
    table.build_deletion_vectors()


def in_the_log(folder: str) -> None:
    table = keyed(folder, inline_bytes="16384", checkpoint_interval="2")
    table.delete(keys=pa.table({"id": [0, 3, 23]}))
    table.delete("id % 5 = 1")


def appended(folder: str) -> None:
    table = rowsieve.create_table(folder, pa.Table.from_pylist(FIRST))
    table.append(pa.Table.from_pylist(SECOND, schema=table.schema))
    table.delete("id = 3")


def clustered(folder: str) -> None:
    rows = pa.Table.from_pylist(FIRST)
    table = rowsieve.create_table(folder, rows, properties={"cluster_by": "s DESC, v"})
    table.delete("id >= 20")


def evolved(folder: str) -> None:
    table = keyed(folder)
    with table.alter() as change:
        change.add_column("added", "int64", default=7).rename_column("s", "text")
    table.drop_column("v")
    table.add_column("v", "string")
    table.upsert({"id": [0], "text": ["new"], "added": [None], "v": ["back"]})


EVOLVED = [
    {"id": row["id"], "text": row["s"], "added": 7, "v": None} for row in LAST.values() if row["id"]
]
EVOLVED.append({"id": 0, "text": "new", "added": None, "v": "back"})


def default_of_writes(folder: str) -> None:
    table = keyed(folder)
    table.add_column("added", "int64", default=7)
    table.set_default("added", 9)


def keeps_default(table: Table) -> None:
    fields = {one.name: one for one in table.handle.pinned.schema}
    assert (fields["added"].fill, fields["added"].default) == ("7", "9")


JSON = pa.field("j", pa.string(), metadata={b"ARROW:extension:name": b"arrow.json"})
DOCUMENTS = [
    {"id": i, "j": text}
    for i, text in enumerate(('{"k": 5}', '{"k": "x"}', '{"k": null}', None, '{"k": 1e2}', "[]"))
]
JSON_ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), JSON])


def documents(folder: str) -> None:
    rows = pa.Table.from_pylist(DOCUMENTS, schema=JSON_ROWS)
    properties = {"json_statistics": "j.k", "json_shredding": "j.k", **TINY}
    rowsieve.create_table(folder, rows, key=["id"], properties=properties)


def settings(folder: str) -> None:
    keyed(folder, text_statistics="s", statistics_bytes="200", column_names="tag", **TINY)


def keeps_settings(table: Table) -> None:
    kept = table.handle.pinned.table.properties
    assert {
        name: kept[name] for name in ("text_statistics", "statistics_bytes", "column_names")
    } == {
        "text_statistics": "s",
        "statistics_bytes": "200",
        "column_names": "tag",
    }


ONCE: Row = {"id": 50, "v": 1, "s": "once"}


def token(folder: str) -> None:
    table = keyed(folder)
    table.upsert(pa.Table.from_pylist([ONCE]), token=("job", 3))


def writes_once(table: Table) -> None:
    """The commit of the token is known: the same write again changes nothing."""
    if not table.handle.read_only:
        before = table.refresh()
        rows = table.to_arrow("id = 50").to_pydict()
        table.upsert(pa.table({**rows, "v": [99]}, schema=table.schema), token=("job", 3))
        assert table.refresh() == before


def event_order(folder: str) -> None:
    """The rows of the second commit are late, and so are those of deleted keys."""
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("v", pa.int64())])
    rows = pa.Table.from_pylist(FIRST, schema=schema)
    table = rowsieve.create_table(folder, rows, key=["id"], sequence=["v"])
    table.upsert(pa.Table.from_pylist(SECOND, schema=table.schema))
    table.delete(keys=[{"id": 0, "v": 5}, {"id": 99, "v": 5}])


def refuses_late_rows(table: Table) -> None:
    """Rows and deletes know their sequence."""
    assert table.sequence == ("v",)
    if not table.handle.read_only:
        before = table.refresh()
        row = table.to_arrow("id = 7").to_pylist()[0]
        late = [{**row, "id": 7, "v": 69}, {**row, "id": 0, "v": 4}, {**row, "id": 99, "v": 4}]
        assert table.upsert(pa.Table.from_pylist(late, schema=table.schema)).rows_late == 3
        assert table.refresh() == before


def column_order(folder: str) -> None:
    """The values of the second commit are late in one column, and alone in the other."""
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("v", pa.int64())])
    fields = [*schema, pa.field("lsn", pa.int64())]
    properties = {"column_order": "each"}
    table = rowsieve.create_table(
        folder, pa.schema(fields), key=["id"], sequence="lsn", properties=properties
    )
    numbers = [{"id": row["id"], "v": row["v"], "lsn": 20} for row in FIRST]
    table.upsert(numbers, columns="given")
    table.upsert([{**row, "v": -1, "lsn": 10} for row in FIRST])
    table.delete(keys=[{"id": 0, "lsn": 20}, {"id": 99, "lsn": 5}])


def refuses_late_values(table: Table) -> None:
    """Each value knows its sequence."""
    if not table.handle.read_only:
        before = table.refresh()
        late = [{"id": 7, "v": 0, "lsn": 19}, {"id": 7, "s": "late", "lsn": 9}]
        for row in late:
            assert table.upsert([row], columns="given").rows_late == 1
        assert table.refresh() == before


def constrained(folder: str) -> None:
    """No visible row violates the constraint, and a hidden one does."""
    table = keyed(folder)
    table.upsert({"id": [0], "v": [5000], "s": ["gone"]})
    table.upsert(pa.Table.from_pylist([LAST[0]], schema=table.schema))
    table.add_constraint("small", "v < 1000")


def obeys(table: Table) -> None:
    assert table.scan("v > 3000").explain().parts_read == 0
    if not table.handle.read_only:
        with pytest.raises(ConstraintViolation, match="'small'"):
            table.update({"v": "v + 2000"})


def rules(folder: str) -> None:
    """Rows whose `v` was added to what they had; `s` was not given."""
    table = rowsieve.create_table(
        folder, pa.Table.from_pylist(FIRST), key=["id"], properties={"combine": "v: sum"}
    )
    table.upsert([{"id": i, "v": -i} for i in range(3, COUNT, 3)], columns="given")


def adds_values(table: Table) -> None:
    """The rule still holds: what is added twice, with both signs, leaves the rows as they are."""
    if not table.handle.read_only:
        before = table.to_arrow("id = 3").to_pylist()
        for number in (5, -5):
            table.upsert([{"id": 3, "v": number}], columns="given")
            (row,) = table.to_arrow("id = 3").to_pylist()
            assert row["v"] == before[0]["v"] + max(number, 0)
        assert table.to_arrow("id = 3").to_pylist() == before


SUMMED = [{**row, "v": row["v"] - (row["id"] if row["id"] % 3 == 0 else 0)} for row in FIRST]


def history(folder: str) -> None:
    """Two versions of each row, and one that a delete ended."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("since", pa.int64(), nullable=False),
            pa.field("until", pa.int64()),
            pa.field("v", pa.int64()),
        ]
    )
    table = rowsieve.create_table(folder, schema, key=["id", "since"])
    for at, ids in ((20, range(COUNT)), (10, range(0, COUNT, 2)), (30, [5])):
        op = "d" if at == 30 else "u"
        events = [{"op": op, "at": at, "id": i, "v": at + i} for i in ids]
        table.apply_changes(events, op="op", sequence="at", history=("since", "until"))


def keeps_history(table: Table) -> None:
    """The moments are known, and the same event again changes nothing."""
    assert table.scan(as_of_event=15).count() == COUNT // 2
    assert table.scan(as_of_event=25).count() == COUNT
    if not table.handle.read_only:
        event = {"op": "u", "at": 10, "id": 4, "v": 14}
        rest = set(table.schema.names) - {"id", "since", "until", "v"}
        if not rest:
            assert not table.apply_changes([event], op="op", sequence="at").committed


VERSIONS: list[Row] = [
    *({"id": i, "since": 10, "until": 20, "v": 10 + i} for i in range(0, COUNT, 2)),
    *({"id": i, "since": 20, "until": 30 if i == 5 else None, "v": 20 + i} for i in range(COUNT)),
]


def sketches(folder: str) -> None:
    keyed(folder).analyze(distinct_counts=True)


def counts_different(table: Table) -> None:
    counted = table.distinct_counts(["v"])["v"]
    assert counted is None or abs(counted - COUNT) <= COUNT // 2


def many_commits(folder: str) -> None:
    table = rowsieve.create_table(
        folder,
        pa.schema(
            [pa.field("id", pa.int64(), nullable=False), ("v", pa.int64()), ("s", pa.string())]
        ),
        key=["id"],
    )
    for start in range(0, COUNT, 4):
        table.upsert(pa.Table.from_pylist(FIRST[start : start + 4], schema=table.schema))


FLAGS: Sequence[Mapping[str, str]] = (
    {"row_codec": "msgpack", "write_encoding": "codec", "statistics": "off"},
    {"write_encoding": "both", "inline_bytes": "4096", "value_forms": "opaque"},
    {"visibility": "eager", "inline_bytes": "0", "compaction": "tiered", "statistics": "on"},
    {"write_encoding": "columns", "read_encoding": "shadow", "on_encoding_difference": "raise"},
    {"pruning": "soft", "audit_percent": "50", "value_forms": "structured"},
)
"""Values of all flags, turned one after another."""


def flagged(folder: str) -> None:
    """Rows whose commits were written as all flags say, turned on and back."""
    table = keyed(folder)
    for number, flags in enumerate(FLAGS):
        table.set_properties(flags)
        table.upsert(pa.Table.from_pylist(FIRST[number::5], schema=table.schema))
        table.delete(keys=pa.table({"id": [100 + number]}))
    table.upsert(pa.Table.from_pylist(SECOND, schema=table.schema))


def encoded(folder: str, halves: str, read: str) -> None:
    """Rows as bytes of a codec, in one file alone and in another beside its columns."""
    table = rowsieve.create_table(
        folder,
        pa.Table.from_pylist(FIRST),
        key=["id"],
        properties={"row_codec": "msgpack", "write_encoding": halves},
    )
    table.set_properties(
        {"write_encoding": "both", "read_encoding": read, "on_encoding_difference": "raise"}
    )
    table.upsert(pa.Table.from_pylist(SECOND, schema=table.schema))


def nested(folder: str) -> None:
    rowsieve.create_table(folder, pa.Table.from_pylist(NESTED), key=["id"], properties=TINY)


NESTED: list[Row] = [
    {"id": 1, "st": {"x": 1, "y": None}, "l": [1, None], "f": -0.0},
    {"id": 2, "st": None, "l": [], "f": None},
    {"id": 3, "st": {"x": None, "y": "b"}, "l": None, "f": float("inf")},
]


def golden(name: str) -> Feature:
    """A table of an earlier release."""
    rows: Iterable[story.Row] = list(GOLDEN[name][-1])
    schema = rowsieve.open_table(FOLDER / name).schema
    return Feature(
        lambda folder: shutil.copytree(FOLDER / name, Path(folder)),
        story.table_of(dict(enumerate(rows)), schema).to_pylist(),
        schema,
        key="key" if "key" in schema.names else "id",
        refused=EXPORTS if name in ("forms", "nanos") else frozenset(),
    )


def published(folder: str) -> None:
    """Rows that two commits of a branch hide, over the same keys."""
    table = rowsieve.create_table(folder, pa.Table.from_pylist(FIRST), key=["id"])
    table.tag("first")
    branch = table.branch("audit")
    for rows in (SECOND[:4], SECOND[2:]):
        branch.upsert(pa.Table.from_pylist(rows, schema=table.schema))
    table.fast_forward("audit")
    for name in ("audit", "first"):
        table.drop_ref(name)


def in_one_transaction(folder: str) -> None:
    """Rows of one commit that has reduced several changes, some of which were undone."""
    table = rowsieve.create_table(folder, pa.Table.from_pylist(FIRST), key=["id"])
    with table.transaction() as tx:
        tx.delete("id % 3 = 0")
        tx.savepoint("deleted")
        tx.update({"v": "0"}, where="id > 5")
        tx.rollback_to("deleted")
        tx.upsert(pa.Table.from_pylist([*SECOND, FIRST[0]], schema=table.schema))


def deleted_in_the_log(folder: str) -> None:
    """Deletion vectors that are in the manifest, over rows of a file and rows of the log."""
    table = rowsieve.create_table(
        folder, pa.Table.from_pylist(FIRST), properties={"checkpoint_interval": "2"}
    )
    table.set_properties({"inline_bytes": "16384"})
    table.append(pa.Table.from_pylist(SECOND, schema=table.schema))
    table.delete("id = 3")
    table.delete("v < -10")
    assert all(
        ref is None or ref.in_manifest for ref in table.handle.newest.parts.deletion_vectors()
    )


def differential(folder: str) -> None:
    """Updates of two times, early ones given up; some rows come and go."""
    schema = pa.Table.from_pylist(FIRST).schema
    table = rowsieve.create_table(folder, schema, mode="differential")
    updates = [
        *({**row, "time": 0, "diff": 1} for row in FIRST),
        *({**FIRST[row["id"]], "time": 1, "diff": -1} for row in SECOND),
        *({**row, "time": 1, "diff": 1} for row in SECOND),
    ]
    for time in (0, 1):
        table.append_updates([row for row in updates if row["time"] == time], upper=time + 1)
    table.advance_since(1)


EXPORTS: Final = frozenset({"export to Iceberg", "export to Delta"})
LOGGED: Final = "written from a log"

FEATURES: Mapping[str, Feature] = {
    "differential": Feature(
        differential,
        [{**row, "_rowsieve_diff": 1} for row in LAST.values()],
        questions=QUESTIONS,
        refused=frozenset(
            {"restore", "restore columns", "rewrite", "pinned version", LOGGED, *EXPORTS}
        ),
    ),
    "a transaction": Feature(in_one_transaction, [*LAST.values()], questions=QUESTIONS),
    "deletions in the log": Feature(
        deleted_in_the_log,
        [row for row in FIRST + SECOND if row["id"] != 3 and row["v"] >= -10],
        questions=QUESTIONS,
    ),
    "rows of a codec": Feature(
        partial(encoded, halves="codec", read="codec"),
        [*LAST.values()],
        questions=QUESTIONS,
        refused=EXPORTS,
    ),
    "columns and codec": Feature(
        partial(encoded, halves="both", read="shadow"),
        [*LAST.values()],
        questions=QUESTIONS,
        refused=EXPORTS,
    ),
    "turned flags": Feature(flagged, [*LAST.values()], questions=QUESTIONS),
    "a published branch": Feature(published, [*LAST.values()], questions=QUESTIONS),
    "hidden rows": Feature(keyed, [*LAST.values()], questions=QUESTIONS),
    "tombstones": Feature(
        tombstones, _without(lambda i: i in (0, 3, 23) or i % 5 == 1), questions=QUESTIONS
    ),
    "deletion vectors": Feature(vectors, _without(lambda i: i % 5 == 1), questions=QUESTIONS),
    "appended rows": Feature(appended, [row for row in FIRST + SECOND if row["id"] != 3]),
    "clustering": Feature(clustered, FIRST[:20], questions=QUESTIONS),
    "changed columns": Feature(
        evolved,
        EVOLVED,
        questions={
            "added = 7": lambda row: row["added"] == 7,
            "v = 'back'": lambda row: row["v"] == "back",
            "text IS NULL": lambda row: row["text"] is None,
        },
    ),
    "defaults": Feature(
        default_of_writes, [{**row, "added": 7} for row in LAST.values()], more=keeps_default
    ),
    "documents": Feature(
        documents,
        DOCUMENTS,
        JSON_ROWS,
        {"j ->> 'k' = '5'": lambda row: row["id"] == 0, "j IS NULL": lambda row: row["id"] == 3},
    ),
    "properties": Feature(settings, [*LAST.values()], questions=QUESTIONS, more=keeps_settings),
    "constraints": Feature(constrained, [*LAST.values()], questions=QUESTIONS, more=obeys),
    "tokens": Feature(token, [*LAST.values(), ONCE], more=writes_once),
    "event order": Feature(event_order, FIRST[1:], questions=QUESTIONS, more=refuses_late_rows),
    "column order": Feature(
        column_order,
        FIRST[1:],
        questions=QUESTIONS,
        more=refuses_late_values,
        refused=frozenset({LOGGED}),
    ),
    "rules": Feature(
        rules, SUMMED, questions=QUESTIONS, more=adds_values, refused=frozenset({LOGGED})
    ),
    "history": Feature(
        history,
        VERSIONS,
        questions={
            "until IS NULL": lambda row: row["until"] is None,
            "until <= 20 AND v > 20": lambda row: row["until"] == 20 and row["v"] > 20,
        },
        more=keeps_history,
        refused=frozenset({LOGGED}),
    ),
    "sketches": Feature(sketches, [*LAST.values()], more=counts_different),
    "many commits": Feature(many_commits, FIRST, questions=QUESTIONS),
    "small changes in the log": Feature(
        in_the_log, _without(lambda i: i in (0, 3, 23) or i % 5 == 1), questions=QUESTIONS
    ),
    "every type": Feature(
        later.every_type, later.TYPED.to_pylist(), typed=later.TYPED, refused=EXPORTS
    ),
    "widened types": Feature(later.widened, later.WIDENED, questions=later.OF_WIDENED),
    "expiring rows": Feature(
        later.expiring, [*LAST.values()], questions=QUESTIONS, more=later.expires_again
    ),
    "tags and branches": Feature(
        later.referred, [*LAST.values()], questions=QUESTIONS, more=later.keeps_refs
    ),
    "kept versions of rows": Feature(
        later.with_versions, [*LAST.values()], questions=QUESTIONS, more=later.knows_versions
    ),
    "published commits": Feature(
        later.published_each_time, [*LAST.values()], questions=QUESTIONS, more=later.is_published
    ),
    "nested columns": Feature(nested, NESTED, questions={"f < 0": lambda _: False}),
    **{f"{name} table of an earlier release": golden(name) for name in GOLDEN},
}
