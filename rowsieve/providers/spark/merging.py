"""Implements `table.merge_spark`: joins a DataFrame to the table, and commits the result once.

Spark joins the source to the newest version by key and evaluates the clauses. The rows of the
result are rows to write and keys to delete; tasks write them in disjoint key ranges.

Soundness: the commit is read-modify-write (invariant I7). It conflicts with every commit that added
rows since the version that was read, and then the merge runs again from the newest version. Two
rows of the source that change one row of the table meet in one task, which refuses them. A clause
never writes another key than that of the joined rows, so a row is in one place of the join only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own name for it

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    InvalidPredicate,
    SchemaMismatch,
    UnsupportedOperation,
)
from rowsieve.opening import open_table
from rowsieve.providers.spark.clauses import Clause, When, parse_clauses
from rowsieve.providers.spark.frames import read_frame, write_frame, write_rows
from rowsieve.providers.spark.source_options import check_reachable
from rowsieve.storage.log_entry import Commit
from rowsieve.storage.retries import Retries
from rowsieve.types.logical import Uuid

if TYPE_CHECKING:
    from rowsieve.table import Table

_WIDTHS: Final = ("tinyint", "smallint", "int", "bigint")
_HOWS: Final = {(False, False): "inner", (True, False): "left", (False, True): "right"}


def merge(
    table: Table,
    frame: Any,
    on: Sequence[str],
    given: Mapping[str, Any],
    retry_timeout_s: float | None,
) -> Commit:
    """Merge a DataFrame by the clauses `given` by their parameter; repeats after conflicts."""
    check_reachable(table.uri)
    if not (hasattr(frame, "schema") and hasattr(frame, "alias")):
        kind = type(frame).__name__
        raise InvalidInput(f"merge_spark: frame must be a Spark DataFrame, not {kind}")
    clauses = [clause for when in When for clause in parse_clauses(when, given.get(when.value))]
    if not clauses:
        raise InvalidInput(f"merge_spark: give a clause: {', '.join(when.value for when in When)}")
    retries = Retries("merge", retry_timeout_s)
    while True:
        base = table.refresh()
        planned = Merge(table, base, frame, on, clauses)
        if planned.is_upsert:
            return write_frame(table, planned.plain_rows(), "upsert")
        options = {"merge": f"{base}:{planned.deletes}"}
        try:
            return write_rows(table, planned.rows(), "merge", options)
        except CommitConflict as error:
            if retries.is_over:
                raise
            retries.wait(error)


class Merge:
    """A merge into one version of a table, as DataFrames."""

    def __init__(
        self, table: Table, version: int, frame: Any, on: Sequence[str], clauses: list[Clause]
    ) -> None:
        pinned = open_table(table.uri, version=version, storage_options=table.storage_options)
        self._schema = pinned.snapshot_for_engines().schema
        self._key = tuple(pinned.key)
        _check_key(self._key, on)
        self._clauses = clauses
        self._frame = frame
        self._columns: dict[str, str] = {name.lower(): name for name in frame.columns}
        for name in self._key:
            self._in_source(name, "its key")
        self._types = dict(zip(self._schema.names, spark_schema(self._schema), strict=True))
        self._source = frame.alias("source")
        self._target = read_frame(pinned, frame.sparkSession, None, None).alias("target")
        self.deletes = "_rowsieve_delete"
        while self.deletes in self._schema.names:
            self.deletes += "_"

    @property
    def is_upsert(self) -> bool:
        """Whether it writes every row of the source as it is, whatever the table has."""
        whens = [clause.when for clause in self._clauses if clause.is_plain]
        return len(self._clauses) == 2 and whens == [When.MATCHED, When.NOT_MATCHED]

    def plain_rows(self) -> Any:
        """The columns of the source that the table has."""
        names = [self._in_source(name, "all columns") for name in self._schema.names]
        return self._frame.select(*[_quoted(name) for name in names])

    def rows(self) -> Any:
        """The rows to write, and the keys to delete with TRUE in the column `deletes`."""
        checked = [self._checked(clause) for clause in self._clauses]
        place = "_rowsieve_clause" + self.deletes
        joined = self._joined()
        chosen: Any = F
        for number, clause in enumerate(self._clauses):
            fires = self._is(clause.when)
            if clause.where is not None:
                fires = fires & F.expr(clause.where)
            chosen = chosen.when(fires, F.lit(number))
        joined = joined.withColumn(place, chosen).where(F.col(place).isNotNull())
        columns = [
            self._choose(F.col(place), [values[name] for values in checked]).alias(name)
            for name in self._schema.names
        ]
        gone = [clause.action == "delete" for clause in self._clauses]
        deletes = self._choose(F.col(place), [F.lit(each) for each in gone]).alias(self.deletes)
        return joined.select(*columns, deletes)

    def _joined(self) -> Any:
        whens = {clause.when for clause in self._clauses}
        outer = (When.NOT_MATCHED in whens, When.NOT_MATCHED_BY_SOURCE in whens)
        same = [self._key_of_source(name) == self._target_column(name) for name in self._key]
        condition = reduce(lambda one, other: one & other, same)
        return self._source.join(self._target, condition, _HOWS.get(outer, "full"))

    def _is(self, when: When) -> Any:
        """Whether a joined row is of this kind; keys of the table are never NULL."""
        target = self._target_column(self._key[0]).isNotNull()
        source = self._key_of_source(self._key[0]).isNotNull()
        match when:
            case When.MATCHED:
                return target & source
            case When.NOT_MATCHED:
                return ~target
            case When.NOT_MATCHED_BY_SOURCE:
                return target & ~source

    def _choose(self, place: Any, values: list[Any]) -> Any:
        chosen: Any = F
        for number, value in enumerate(values):
            chosen = chosen.when(place == number, value)
        return chosen

    def _checked(self, clause: Clause) -> dict[str, Any]:
        """The value of each column of the table, in its type; NULL where a row is deleted."""
        if clause.where is not None:
            found = self._type_of(clause, "where", clause.where)
            if found not in ("boolean", "void"):
                raise InvalidPredicate(
                    f"merge_spark: {clause.name}: where has the type {found}, not boolean: "
                    f"{clause.where}"
                )
        values = self._values(clause)
        inserts = clause.when is When.NOT_MATCHED
        result: dict[str, Any] = {}
        for name, type_ in self._types_by_name():
            if name in self._key:
                column = self._key_of_source(name) if inserts else self._target_column(name)
            elif clause.action == "delete":
                column = F.lit(None)
            elif name in values:
                self._check_type(clause, name, values[name])
                column = F.expr(values[name])
            else:
                column = self._target_column(name)
            result[name] = column.cast(type_)
        return result

    def _types_by_name(self) -> list[tuple[str, Any]]:
        return [(name, self._types[name].dataType) for name in self._schema.names]

    def _values(self, clause: Clause) -> dict[str, str]:
        """SQL text per column of the table that the clause assigns."""
        if clause.action == "delete":
            return {}
        if clause.values is None:
            names = {name: self._in_source(name, clause.name) for name in self._schema.names}
            found = {name: f"source.{_quoted(theirs)}" for name, theirs in names.items()}
            for name in self._key:
                self._check_type(clause, name, found.pop(name))
            return found
        found = {self._schema.field(name).name: text for name, text in clause.values.items()}
        for name in self._key:
            text = found.pop(name, None)
            if text is not None and not self._is_key(clause, name, text):
                raise UnsupportedOperation(
                    f"merge_spark: {clause.name} assigns {text} to the key column {name!r}; a key "
                    f"identifies its row, and only source.{name} may be assigned to it"
                )
            if clause.when is When.NOT_MATCHED:
                self._check_type(clause, name, f"source.{_quoted(self._columns[name.lower()])}")
        missing = set(self._schema.names) - set(self._key) - set(found)
        if missing and clause.when is When.NOT_MATCHED:
            raise InvalidInput(
                f"merge_spark: {clause.name} has no value for {', '.join(sorted(missing))}; an "
                "insert needs a value for every column, which may be 'NULL'"
            )
        return found

    def _is_key(self, clause: Clause, name: str, text: str) -> bool:
        """Whether the text is the key of the source, which that of the table equals."""
        if clause.when is When.NOT_MATCHED_BY_SOURCE:
            return False
        self._type_of(clause, name, text)
        side = self._source
        theirs = side.select(f"source.{_quoted(self._columns[name.lower()])}")
        try:
            return bool(side.select(F.expr(text)).sameSemantics(theirs))
        except PySparkException:
            return False

    def _check_type(self, clause: Clause, name: str, text: str) -> None:
        """SchemaMismatch unless every value of the text's type has the same value in the column."""
        wanted = self._types[name].dataType.simpleString()
        found = self._type_of(clause, name, text)
        if not _is_assignable(found, wanted):
            raise SchemaMismatch(
                f"merge_spark: {clause.name}: the value of column {name!r} has Spark's type "
                f"{found}, and the column {wanted}; cast it: cast({text} AS {wanted})"
            )

    def _type_of(self, clause: Clause, what: str, text: str) -> str:
        """Spark's name of the type of SQL text over the rows that the clause applies to."""
        joined = self._source.crossJoin(self._target)
        sides = {When.NOT_MATCHED: self._source, When.NOT_MATCHED_BY_SOURCE: self._target}
        try:
            found = joined.select(F.expr(text).alias("value"))  # names must be unambiguous
            sides.get(clause.when, joined).select(F.expr(text))  # and of rows that the clause has
            type_ = str(found.schema[0].dataType.simpleString())
        except PySparkException as error:
            first = str(error).splitlines()[0]
            raise InvalidPredicate(
                f"merge_spark: {clause.name}: Spark refuses {what} = {text}: {first}"
            ) from error
        if hasattr(found, "_jdf") and not found._jdf.queryExecution().analyzed().deterministic():
            raise UnsupportedOperation(
                f"merge_spark: {clause.name}: {text} may differ each time it is evaluated; compute "
                "it in the source, and write that to a table first"
            )
        return type_

    def _key_of_source(self, name: str) -> Any:
        column = F.col(f"source.{_quoted(self._columns[name.lower()])}")
        if isinstance(self._schema.field(name).type, Uuid):
            return F.lower(column)  # the table's form; Spark compares text
        return column

    def _target_column(self, name: str) -> Any:
        return F.col(f"target.{_quoted(name)}")

    def _in_source(self, name: str, what: str) -> str:
        if (found := self._columns.get(name.lower())) is None:
            raise SchemaMismatch(
                f"merge_spark: {what}: the source has no column {name!r}, but "
                f"({', '.join(self._frame.columns)})"
            )
        return found


def _check_key(key: tuple[str, ...], on: Sequence[str]) -> None:
    if not key:
        raise UnsupportedOperation(
            "merge_spark: the table has no key; create one with key=, or append rows"
        )
    if sorted(name.lower() for name in on) != sorted(name.lower() for name in key):
        raise UnsupportedOperation(
            f"merge_spark: on= must be the key of the table, {list(key)}, not {list(on)}: rows of "
            "the table are found and replaced by key. Join the source to the table first to find "
            "the keys"
        )


def _is_assignable(found: str, wanted: str) -> bool:
    """Whether Spark's cast from one type to the other, by their names, keeps every value."""
    if found in (wanted, "void"):
        return True
    if found in _WIDTHS:
        if wanted in _WIDTHS:
            return _WIDTHS.index(found) < _WIDTHS.index(wanted)
        if wanted == "double":
            return found != "bigint"
        digits = (3, 5, 10, 19)[_WIDTHS.index(found)]
        return wanted.startswith("decimal(") and _whole_digits(wanted) >= digits
    if found.startswith("decimal("):
        if wanted == "double":
            return _digits(found)[0] <= 15  # a literal such as 0.5; the nearest double reads back
        is_decimal = wanted.startswith("decimal(")
        return is_decimal and (
            _whole_digits(wanted) >= _whole_digits(found)
            and _digits(wanted)[1] >= _digits(found)[1]
        )
    return (found, wanted) == ("float", "double")


def _digits(name: str) -> tuple[int, int]:
    precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _whole_digits(name: str) -> int:
    precision, scale = _digits(name)
    return precision - scale


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
