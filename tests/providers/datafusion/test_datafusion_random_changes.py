"""Random statements give the rows and counts that DuckDB in memory gives, whoever else commits."""

from __future__ import annotations

from collections import Counter
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import KeyViolation, UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.changes.statement_queries import StatementQueries
from tests import profiles

SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
IDS = st.integers(0, 12)
ROWS = st.builds(
    lambda *cells: dict(zip(SCHEMA.names, cells, strict=True)),
    IDS,
    st.none() | st.integers(-2, 3),
    st.none() | st.sampled_from([-1.5, 0.0, 2.0]),
    st.none() | st.sampled_from(["a", "ab", "B", ""]),
)


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["id"]: row for row in rows}.values())


TABLES = st.lists(ROWS, max_size=9)
KEYED = TABLES.map(by_id)

ATOMS = [
    "{q}g > 0", "{q}g = 1 OR {q}v IS NULL", "{q}s LIKE 'a%'", "{q}id >= 6", "{q}id IN (1, 3, 8)",
    "upper({q}s) = 'AB'", "{q}g + {q}id > 7",
    "CASE WHEN {q}g IS NULL THEN {q}id < 4 ELSE {q}g > 0 END",
    "NOT ({q}v < 1)", "{q}id IN (SELECT id FROM src WHERE g IS NOT NULL)",
    "{q}g = (SELECT max(g) FROM t)", "EXISTS (SELECT 1 FROM src WHERE src.id = {q}id)", "TRUE",
    "{q}v IS DISTINCT FROM 2.0",
]  # fmt: skip
VALUES = {
    "g": ["{q}g + 1", "NULL", "7", "{q}id", "CASE WHEN {q}g > 0 THEN 1 ELSE {q}g END",
          "(SELECT min(g) FROM src)", "4.0"],
    "v": ["{q}v * 2", "{q}g", "0.25", "NULL", "coalesce({q}v, {q}id)"],
    "s": ["upper({q}s)", "'x'", "{q}s || '-'", "NULL", "(SELECT max(s) FROM t)"],
}  # fmt: skip


@st.composite
def conditions(draw: Any, q: str = "") -> str:
    atoms = [atom for atom in ATOMS if not (q and "src" in atom)]  # DataFusion: in WHERE alone
    terms = draw(st.lists(st.sampled_from(atoms), min_size=1, max_size=2))
    between: str = draw(st.sampled_from([" AND ", " OR "]))
    return between.join(f"({term.format(q=q)})" for term in terms)


@st.composite
def assignments(draw: Any, q: str = "") -> str:
    names = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True))
    return ", ".join(
        f"{name} = {draw(st.sampled_from(VALUES[name])).format(q=q)}" for name in names
    )


@st.composite
def merges(draw: Any) -> str:
    clauses = []
    for left in reversed(range(draw(st.integers(1, 2)))):
        where = f" AND ({draw(conditions('x.'))})" if left or draw(st.booleans()) else ""
        if draw(st.booleans()):
            clauses.append(f"WHEN MATCHED{where} THEN DELETE")
        else:
            new = draw(
                st.sampled_from(["g = y.g, s = y.s", "v = x.v + y.g", draw(assignments("x."))])
            )
            clauses.append(f"WHEN MATCHED{where} THEN UPDATE SET {new}")
    if draw(st.booleans()):
        where = draw(st.sampled_from(["", " AND y.g > 0", " AND y.id > (SELECT min(id) FROM t)"]))
        insert = draw(st.sampled_from([
            "INSERT (id, g) VALUES (y.id, y.g)", "INSERT VALUES (y.id, y.g, 1, y.s)",
            "INSERT (s, id) VALUES (upper(y.s), y.id)",
        ]))  # fmt: skip
        clauses.append(f"WHEN NOT MATCHED{where} THEN {insert}")
    if draw(st.booleans()):
        where = f" AND ({draw(conditions('x.'))})" if draw(st.booleans()) else ""
        action = draw(st.sampled_from(["DELETE", f"UPDATE SET {draw(assignments('x.'))}"]))
        clauses.append(f"WHEN NOT MATCHED BY SOURCE{where} THEN {action}")
    source = draw(
        st.sampled_from(
            [
                "src y",
                "(SELECT * FROM src WHERE g IS NOT NULL) AS y",
                "(SELECT id + 1 AS id, g, v, s FROM t) y",
            ]
        )
    )
    return f"MERGE INTO t AS x USING {source} ON x.id = y.id {' '.join(clauses)}"


INSERTS = st.sampled_from([
    "INSERT INTO t VALUES (20, 1, 2, 'n'), (21, NULL, 2.5, NULL)",
    "INSERT INTO t (id, s) SELECT id + 30, s FROM src",
    "INSERT INTO t SELECT id + 5, g, v, s FROM t WHERE g > 0",
    "INSERT INTO t SELECT * FROM src",
])  # fmt: skip
ON_CONFLICT = st.sampled_from([
    "INSERT INTO t SELECT * FROM src ON CONFLICT DO NOTHING",
    "INSERT INTO t (id, g) VALUES (1, 5), (2, NULL), (40, 0) ON CONFLICT (id) DO NOTHING",
    "INSERT OR REPLACE INTO t SELECT * FROM src",
    "INSERT OR REPLACE INTO t SELECT id + 1, g, v, s FROM t WHERE id > 3",
    "INSERT INTO t SELECT * FROM src ON CONFLICT (id) DO UPDATE SET g = excluded.g, s = t.s || '+'",
    "INSERT INTO t SELECT * FROM src ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE t.g > 0",
])  # fmt: skip
WHERE = st.just("") | conditions().map(lambda text: f" WHERE {text}")
CHANGES = (
    st.builds("UPDATE t SET {}{}".format, assignments(), WHERE)
    | st.builds("DELETE FROM t{}".format, WHERE)
    | INSERTS
)
STATEMENTS = CHANGES | ON_CONFLICT | merges()
ONE_TO_MANY = merges().filter(lambda text: "FROM t) y" not in text)
"""Each row of the table is matched by one row of the source at most: DuckDB does not check it."""

OTHERS = st.sampled_from(
    [
        "UPDATE t SET g = 2 WHERE id < 4",
        "DELETE FROM t WHERE id > 5",
        "INSERT INTO t VALUES (90, 3, 1.0, 'ab')",
        "UPDATE t SET s = 'ab', v = NULL WHERE id IN (1, 8)",
    ]
)


class Both:
    """A table of ours and one of DuckDB's, which take the same statements."""

    def __init__(self, folder: str, rows: list[Any], source: list[Any], key: list[str]) -> None:
        data = pa.Table.from_pylist(rows, SCHEMA)
        half = len(rows) // 2
        self.table = rs.create_table(f"{folder}/t", SCHEMA, key=key or None)
        for piece in (data.slice(half), data.slice(0, half)):
            if piece.num_rows:
                self.table.upsert(piece) if key else self.table.append(piece)
        self.session = SessionContext()
        self.session.register_table("t", self.table)
        wanted = pa.Table.from_pylist(source, SCHEMA)
        self.session.register_record_batches("src", [wanted.to_batches() or [empty()]])
        self.duck = duckdb.connect()
        primary = "PRIMARY KEY" if key else ""
        self.duck.execute(
            f"CREATE TABLE t (id BIGINT {primary}, g BIGINT, v DOUBLE, s VARCHAR);"
            "INSERT INTO t SELECT * FROM data; CREATE TABLE src AS SELECT * FROM wanted"
        )

    def run(self, statement: str, other: str | None = None) -> None:
        """Run it in both; `other` is committed while ours is computed.

        DuckDB runs the other one first, unless ours has found nothing to do, or an error, before.
        """
        before = self.table.refresh()
        try:
            count = self._ours(statement, other)
        except UnsupportedOperation:
            self._other(other)
        except KeyViolation:
            first = self._fails(statement)
            self._other(other)
            assert first or self._fails(statement)
        else:
            done = self.table.refresh() - before - self.other_commits
            first = not done and self._count(statement) == count
            if not first:
                self._other(other)
            found = self.duck.execute(statement).fetchone()
            assert found is not None
            assert count == found[0], statement
            if first:
                self._other(other)
        ours = Counter(map(repr, self.table.scan().to_arrow().to_pylist()))
        theirs = Counter(map(repr, self.duck.sql("FROM t").to_arrow_table().to_pylist()))
        assert ours == theirs, statement

    def _fails(self, statement: str) -> bool:
        """Whether it would violate the key in DuckDB; changes nothing."""
        return self._count(statement) is None

    def _count(self, statement: str) -> int | None:
        """The count that it would have in DuckDB, None for a violation; changes nothing."""
        self.duck.execute("BEGIN")
        try:
            found = self.duck.execute(statement).fetchone()
        except duckdb.ConstraintException:
            return None
        finally:
            self.duck.execute("ROLLBACK")
        return None if found is None else int(found[0])

    def _other(self, other: str | None) -> None:
        if other is not None and self.other_committed:
            self.duck.execute(other)

    def _ours(self, statement: str, other: str | None) -> int:
        rows = StatementQueries.run
        self.other_committed, self.other_commits = False, 0

        def interrupted(queries: Any, *arguments: Any) -> pa.Table:
            found = rows(queries, *arguments)
            if other is not None and not self.other_committed:
                self.other_committed = True
                aside, seen = SessionContext(), rs.open_table(self.table.uri)
                aside.register_table("t", seen)
                before = seen.version
                aside.sql(other)
                self.other_commits = seen.version - before
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StatementQueries, "run", interrupted)
            frame = self.session.sql(statement)
        assert frame.to_pylist() == frame.to_pylist()
        return int(frame.to_pylist()[0]["count"])


def empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], SCHEMA)


@profiles.judged(60)
@given(KEYED, KEYED, st.lists(STATEMENTS, min_size=1, max_size=3))
def test_statements_on_a_keyed_table(rows: Any, source: Any, statements: list[str]) -> None:
    with TemporaryDirectory() as folder:
        both = Both(folder, rows, source, ["id"])
        for statement in statements:
            both.run(statement)


@profiles.judged(30)
@given(TABLES, KEYED, st.lists(CHANGES | ONE_TO_MANY, min_size=1, max_size=3))
def test_statements_on_a_table_without_a_key(rows: Any, source: Any, statements: list[str]) -> None:
    with TemporaryDirectory() as folder:
        both = Both(folder, rows, source, [])
        for statement in statements:
            both.run(statement)


@profiles.judged(45)
@given(KEYED, KEYED, STATEMENTS, OTHERS)
def test_a_commit_between_reading_and_committing_comes_first(
    rows: Any, source: Any, statement: str, other: str
) -> None:
    rows = [row for row in rows if row["id"] != 90]
    with TemporaryDirectory() as folder:
        Both(folder, rows, source, ["id"]).run(statement, other)


@profiles.judged(20)
@given(TABLES, KEYED, CHANGES | ONE_TO_MANY, OTHERS)
def test_a_commit_in_between_comes_first_without_a_key(
    rows: Any, source: Any, statement: str, other: str
) -> None:
    with TemporaryDirectory() as folder:
        Both(folder, rows, source, []).run(statement, other)
