"""The rows of a merge into a table with a key, as a DataFrame.

Spark joins the source to the newest version by key and evaluates the clauses. The rows of the
result are rows to write and keys to delete.

Soundness: a clause never writes another key than that of the joined rows, so a row is in one place
of the join only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.bridges.sql.spark.settings import CASE_SENSITIVE
from rowsieve.errors import InvalidInput, InvalidPredicate, SchemaMismatch, UnsupportedOperation
from rowsieve.opening import open_table
from rowsieve.providers.spark.frames import read_frame
from rowsieve.providers.spark.name_case import OddNames, check_case
from rowsieve.providers.spark.reads.native_columns import quoted
from rowsieve.providers.spark.row_types import UUID_FORM
from rowsieve.providers.spark.writes.clauses import Aliases
from rowsieve.providers.spark.writes.merge_types import is_assignable, is_comparable
from rowsieve.statements.merge_sequences import in_order, sequences_of_source
from rowsieve.statements.merge_statement import Action, MergeClause, When
from rowsieve.types.logical import Uuid

if TYPE_CHECKING:
    from rowsieve.table import Table

_NO_UUID: Final = (  # Spark's error ends with this text, from which we make ours
    "rowsieve.errors.SchemaMismatch: merge_spark: the key column {name!r} is uuid in the table, "
    "but a value of the source is not a UUID, such as 123e4567-e89b-12d3-a456-426614174000: "
)
_HOWS: Final = {(False, False): "inner", (True, False): "left", (False, True): "right"}


class Merge:
    """A merge into one version of a table, as DataFrames."""

    def __init__(
        self,
        table: Table,
        version: int,
        frame: Any,
        on: Mapping[str, str],
        clauses: Sequence[MergeClause],
        aliases: Aliases,
    ) -> None:
        pinned = open_table(
            table.uri, version=version, storage_options=table.handle.storage_options
        )
        self._schema = pinned.handle.pinned.schema
        self._key = tuple(pinned.key)
        self._on = self._compared(tuple(on))
        self._aliases = aliases
        self._frame = frame
        self.order = pinned.handle.pinned.table.sequence
        self._sequences = sequences_of_source(clauses, self.order, frame.columns)
        alias = quoted(aliases.source)
        self._clauses = [
            in_order(clause, self._sequences, lambda name: f"{alias}.{quoted(name)}")
            for clause in clauses
        ]
        self._functions = _functions_of(frame.sparkSession)
        self._columns = _source_columns(frame, self._schema.names)
        for name, theirs in on.items():
            if theirs != name:
                self._columns[self._schema.field(name).name] = [theirs]
        # Spark does not cast to members that are NOT NULL; the writer checks them
        columns = spark_schema(self._schema).toNullable()
        self._types = {column.name: column.dataType for column in columns}
        for name in self._on:
            self._check_compared_type(name)
        self._source = self._source_rows().alias(aliases.source)
        self._target = self._target_rows(pinned).alias(aliases.target)
        self.deletes = free_name("_rowsieve_delete", self._schema.names)

    def _compared(self, on: Sequence[str]) -> tuple[str, ...]:
        """The columns that are equal in matching rows; refuses others than the key."""
        _check_key(self._key, on)
        return self._key

    def _source_rows(self) -> Any:
        return self._frame

    def _target_rows(self, pinned: Table) -> Any:
        return read_frame(pinned, self._frame.sparkSession, None, None)

    @property
    def is_upsert(self) -> bool:
        """True if it writes every row of the source unchanged, for any rows of the table."""
        whens = [clause.when for clause in self._clauses if clause.is_plain]
        return len(self._clauses) == 2 and whens == [When.MATCHED, When.NOT_MATCHED]

    def plain_rows(self) -> Any:
        """The columns of the source that the table has."""
        names = {name: self._in_source(name, "all columns") for name in self._schema.names}
        return self._frame.selectExpr(
            *[f"{quoted(theirs)} AS {quoted(name)}" for name, theirs in names.items()]
        )

    def rows(self) -> Any:
        """The rows to write, and the keys to delete with TRUE in the column `deletes`.

        Those of an upsert are the rows of the source, which are not joined.
        """
        if self.is_upsert:
            return self.plain_rows().withColumn(self.deletes, self._functions.expr("false"))
        rows = self._changed_rows([])
        return self._deleted_once(rows) if self.deletes_all_matched else rows

    def _changed_rows(self, others: list[Any]) -> Any:
        """The new rows, TRUE in the column `deletes` for rows to delete, and other columns."""
        checked = [self._checked(clause) for clause in self._clauses]
        number_name = free_name("_rowsieve_clause", (*self._schema.names, *self._frame.columns))
        make = self._functions
        chosen: Any = make
        for number, clause in enumerate(self._clauses):
            fires = self._is(clause.when)
            if clause.where is not None:
                fires = fires & self._column(clause.where)
            chosen = chosen.when(fires, make.lit(number))
        clause_number = make.col(number_name)
        joined = self._joined().withColumn(number_name, chosen).where(clause_number.isNotNull())
        columns = [
            self._choose(clause_number, [values[name] for values in checked]).alias(name)
            for name in self._schema.names
        ]
        gone = [make.lit(clause.action is Action.DELETE) for clause in self._clauses]
        deletes = self._choose(clause_number, gone).alias(self.deletes)
        return joined.select(*columns, deletes, *others)

    @property
    def deletes_all_matched(self) -> bool:
        """True if all matched rows are deleted, by however many rows of the source."""
        matched = [clause for clause in self._clauses if clause.when is When.MATCHED]
        deletes = [clause.action is Action.DELETE and clause.where is None for clause in matched]
        return deletes == [True]

    def _deleted_once(self, rows: Any) -> Any:
        """The rows with each deleted key once; the inserted ones stay, so two of a key are seen.

        In a table with an event order, the newest delete of a key stays.
        """
        make = self._functions
        number = free_name("_rowsieve_number", (*self._schema.names, self.deletes))
        each = make.when(make.col(self.deletes), make.lit(-1))
        numbered = rows.withColumn(number, each.otherwise(make.monotonically_increasing_id()))
        if not self.order:
            return numbered.dropDuplicates([*self._key, number]).drop(number)
        group = [make.col(quoted(name)) for name in (*self._key, number)]
        columns = make.struct(*[make.col(quoted(name)) for name in rows.columns])
        sequence = make.struct(*[make.col(quoted(name)) for name in self.order])
        newest = numbered.groupBy(*group).agg(make.max_by(columns, sequence).alias(number + "_row"))
        return newest.select(make.col(f"{number}_row.*"))

    def _joined(self) -> Any:
        whens = {clause.when for clause in self._clauses}
        outer = (When.NOT_MATCHED in whens, When.NOT_MATCHED_BY_SOURCE in whens)
        same = [self._compared_of_source(name) == self._target_column(name) for name in self._on]
        condition = reduce(lambda one, other: one & other, same)
        return self._source.join(self._target, condition, _HOWS.get(outer, "full"))

    def _is(self, when: When) -> Any:
        """Return whether a joined row is of this kind."""
        target, source = self._sides()
        match when:
            case When.MATCHED:
                return target & source
            case When.NOT_MATCHED:
                return ~target
            case When.NOT_MATCHED_BY_SOURCE:
                return target & ~source

    def _sides(self) -> tuple[Any, Any]:
        """Whether a joined row has a row of the table, and one of the source.

        Keys of the table are never NULL.
        """
        name = self._key[0]
        return self._target_column(name).isNotNull(), self._compared_of_source(name).isNotNull()

    def _choose(self, clause_number: Any, values: list[Any]) -> Any:
        chosen: Any = self._functions
        for number, value in enumerate(values):
            chosen = chosen.when(clause_number == number, value)
        return chosen

    def _checked(self, clause: MergeClause) -> dict[str, Any]:
        """The value of each column of the table, in its type; NULL where a row is deleted."""
        if clause.where is not None:
            type_name = self._type_of(clause, "where", clause.where)
            if type_name not in ("boolean", "void"):
                raise InvalidPredicate(
                    f"merge_spark: {clause.name}: where has the type {type_name}, not boolean: "
                    f"{clause.where}"
                )
        values = self._values(clause)
        inserts = clause.when is When.NOT_MATCHED
        result: dict[str, Any] = {}
        for name, type_ in self._types.items():
            if name in self._key:
                column = self._compared_of_source(name) if inserts else self._target_column(name)
            elif clause.action is Action.DELETE:
                column = self._of_deleted(clause, name)
            elif name in values:
                self._check_type(clause, name, values[name])
                column = self._column(values[name])
            else:
                column = self._target_column(name)
            result[name] = column.cast(type_)
        return result

    def _of_deleted(self, clause: MergeClause, name: str) -> Any:
        """The value of a column in a deleted row: its sequence, of the source if that has one."""
        if name not in self.order:
            return self._functions.lit(None)
        if clause.when is not When.MATCHED or name not in self._sequences:
            return self._target_column(name)
        text = f"{quoted(self._aliases.source)}.{quoted(self._sequences[name])}"
        self._check_type(clause, name, text)
        return self._column(text)

    def _column(self, value: Any) -> Any:
        """The Column of SQL text; a Column is returned as it is."""
        return self._functions.expr(value) if isinstance(value, str) else value

    def _values(self, clause: MergeClause) -> dict[str, Any]:
        """Text or Column per column of the table that the clause assigns."""
        if clause.action is Action.DELETE:
            return {}
        if clause.values is None:
            names = {name: self._in_source(name, clause.name) for name in self._schema.names}
            alias = quoted(self._aliases.source)
            assigned = {name: f"{alias}.{quoted(theirs)}" for name, theirs in names.items()}
            for name in self._key:
                self._check_type(clause, name, assigned.pop(name))
            return assigned
        assert isinstance(clause.values, Mapping)  # Spark has no values in the table's order
        assigned = {self._schema.field(name).name: value for name, value in clause.values.items()}
        if len(assigned) < len(clause.values):
            raise InvalidInput(
                f"merge_spark: {clause.name} assigns two values to a column: {list(clause.values)}"
            )
        for name in self._key:
            text = assigned.pop(name, None)
            if text is not None and not self._is_key(clause, name, text):
                raise UnsupportedOperation(
                    f"merge_spark: {clause.name} assigns {text} to the key column {name!r}; a key "
                    f"identifies its row: {self._allowed_key(clause, name)}"
                )
            if clause.when is When.NOT_MATCHED:
                self._check_type(clause, name, self._text_of_source(name))
        missing = set(self._schema.names) - set(self._key) - set(assigned)
        if missing and clause.when is When.NOT_MATCHED:
            raise InvalidInput(
                f"merge_spark: {clause.name} has no value for {', '.join(sorted(missing))}; an "
                "insert needs a value for every column, which may be 'NULL'"
            )
        return assigned

    def _allowed_key(self, clause: MergeClause, name: str) -> str:
        """The values that a clause may assign to a column of the key, for an error."""
        if clause.when is When.NOT_MATCHED_BY_SOURCE:
            return "delete the row, and insert another one"
        return f"only {self._aliases.source}.{self._columns[name][0]} may be assigned to it"

    def _is_key(self, clause: MergeClause, name: str, text: Any) -> bool:
        """Return whether the value is the key of the source, which that of the table equals."""
        if clause.when is When.NOT_MATCHED_BY_SOURCE:
            return False
        self._type_of(clause, name, text)
        side = self._source
        theirs = side.select(self._text_of_source(name))
        try:
            return bool(side.select(self._column(text)).sameSemantics(theirs))
        except PySparkException:
            return False

    def _check_type(self, clause: MergeClause, name: str, text: Any) -> None:
        """Raise SchemaMismatch unless the column's type has every value of the text's type."""
        wanted = self._types[name].simpleString()
        type_name = self._type_of(clause, name, text)
        if not is_assignable(type_name, wanted):
            remedy = f"cast it to {wanted}"
            if isinstance(text, str):
                remedy = f"cast it: cast({text} AS {wanted})"
            if wanted.startswith("struct<"):  # a cast would go by position
                remedy = "build it with named_struct"
            raise SchemaMismatch(
                f"merge_spark: {clause.name}: the value of column {name!r} has Spark's type "
                f"{type_name}, and the column {wanted}; {remedy}"
            )

    def _type_of(self, clause: MergeClause, what: str, text: Any) -> str:
        """Spark's name of the type of a value over the rows that the clause applies to."""
        joined = self._source.crossJoin(self._target)
        sides = {When.NOT_MATCHED: self._source, When.NOT_MATCHED_BY_SOURCE: self._target}
        try:
            frame = joined.select(self._column(text).alias("value"))  # names must be unambiguous
            type_ = str(frame.schema[0].dataType.simpleString())
            rows = sides.get(clause.when, joined)  # names must be of rows that the clause has
            # and, as in WHERE, no aggregates, windows and generators; `schema` asks Spark
            assert rows.where(self._column(text).isNotNull()).selectExpr("1").schema
        except PySparkException as error:
            first = next((line for line in str(error).splitlines() if line), "")
            raise InvalidPredicate(
                f"merge_spark: {clause.name}: Spark refuses {what} = {text}: {first}"
            ) from error
        if not _is_deterministic(frame):
            if not _is_deterministic(self._frame):
                raise UnsupportedOperation(
                    "merge_spark: the source may differ each time it is evaluated, by rand() for "
                    "example; write it to a table first"
                )
            raise UnsupportedOperation(
                f"merge_spark: {clause.name}: {text} may differ each time it is evaluated; compute "
                "it in the source, and write that to a table first"
            )
        return type_

    def _compared_of_source(self, name: str) -> Any:
        column = self._functions.col(self._text_of_source(name))
        if not isinstance(self._schema.field(name).type, Uuid):
            return column
        refused = self._functions.concat(self._functions.lit(_NO_UUID.format(name=name)), column)
        is_uuid = column.isNull() | column.rlike(UUID_FORM)
        # the table's form, as Spark compares text; other text would match no row
        return self._functions.when(is_uuid, self._functions.lower(column)).otherwise(
            self._functions.raise_error(refused)
        )

    def _text_of_source(self, name: str) -> str:
        theirs = self._in_source(name, "its key")
        return f"{quoted(self._aliases.source)}.{quoted(theirs)}"

    def _target_column(self, name: str) -> Any:
        return self._functions.col(f"{quoted(self._aliases.target)}.{quoted(name)}")

    def _in_source(self, name: str, what: str) -> str:
        columns = self._columns[name]
        if len(columns) == 1:
            return columns[0]
        has = f"has the columns {', '.join(columns)} for" if columns else "has no column"
        raise SchemaMismatch(
            f"merge_spark: {what}: the source {has} {name!r}; its columns are "
            f"({', '.join(self._frame.columns)})"
        )

    def _check_compared_type(self, name: str) -> None:
        """Raise SchemaMismatch if Spark's cast of the keys would make different keys match."""
        theirs, wanted = (
            self._in_source(name, "its key" if self._key else "on="),
            self._types[name].simpleString(),
        )
        type_name = self._frame.schema[theirs].dataType.simpleString()
        if not is_comparable(type_name, wanted):
            role = "key column" if self._key else "column"
            raise SchemaMismatch(
                f"merge_spark: the {role} {name!r} has Spark's type {wanted}, and {theirs!r} "
                f"of the source {type_name}; cast that to {wanted} in the source"
            )


def _source_columns(frame: Any, names: Sequence[str]) -> dict[str, list[str]]:
    """The columns of the source by the name of a column of the table, as the session reads names.

    UnknownColumn if the session takes two columns of the table for one.
    """
    setting = frame.sparkSession.conf.get
    columns: dict[str, list[str]] = {}
    for name in names:
        others = [other for other in names if other != name and other.lower() == name.lower()]
        check_case(OddNames(ambiguous=name if others else None), setting)
        theirs = [each for each in frame.columns if each.lower() == name.lower()]
        if others or str(setting(CASE_SENSITIVE, "false")).lower() == "true":
            exact = [each for each in theirs if each == name]
            theirs = exact if exact or others else theirs
        columns[name] = theirs
    return columns


def _functions_of(session: Any) -> Any:
    """PySpark's functions that make columns of the session; those of a client are others."""
    if hasattr(session, "_jsparkSession"):
        return functions
    return import_module("pyspark.sql.connect.functions.builtin")


def _is_deterministic(frame: Any) -> bool:
    """Return whether Spark calls the plan deterministic; True for a Spark Connect client."""
    return not hasattr(frame, "_jdf") or bool(
        frame._jdf.queryExecution().analyzed().deterministic()
    )


def free_name(start: str, names: Sequence[str]) -> str:
    """The name, with underscores at its end while it is one of these in any case."""
    taken = {name.lower() for name in names}
    while start in taken:
        start += "_"
    return start


def _check_key(key: tuple[str, ...], on: Sequence[str]) -> None:
    if sorted(name.lower() for name in on) != sorted(name.lower() for name in key):
        raise UnsupportedOperation(
            f"merge_spark: on= must be the key of the table, {list(key)}, not {list(on)}: rows of "
            "the table are found and replaced by key. Join the source to the table first to find "
            "the keys"
        )
