"""One condition of an engine's text, translated to another language whose engine is at hand.

Both engines judge the same edge rows. An exact translation keeps the source's rows, and fails on no
row on which nothing fails here; a superset keeps them and more, and its residual takes those away.
What is not translated says why. Replay one by its name: `python -m
tests.bridges.against_engines.pairs 'duckdb|i64|a > 1' polars`.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import datafusion
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.substrait as ps

import rowsieve as rs
from rowsieve.bridges.languages import bridge_named
from rowsieve.errors import RowsieveError
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.types.encodings import schema_of
from rowsieve.types.shown_values import shown_row
from tests.bridges.against_engines import python_expressions
from tests.bridges.against_engines.compare import Case
from tests.bridges.against_engines.edges import decoded, rows
from tests.bridges.against_engines.engines import ENGINES
from tests.bridges.against_engines.judges import (
    DataFusion,
    DuckDb,
    LackingError,
    Postgres,
    ValueFailure,
    numbered,
    taken,
)
from tests.bridges.excluded_failures import has_failing_term
from tests.bridges.sql.postgres import ROW

_ROWS = 60  # of a case; drawn from its pairs of edge values
_ALONE = 0.6  # of conditions on a value
_SQL_TREES = (
    *("({}) OR ({})", "NOT (({}) AND ({}))", "({}) AND NOT ({})", "({}) IS NOT TRUE OR ({})"),
    *("CASE WHEN {} THEN {} ELSE a IS NULL END", "coalesce({}, {})", "(({}) IS NULL) = ({})"),
)
_PYTHON_TREES = ("({}) | ({})", "~(({}) & ({}))", "({}) & ~({})", "({}).is_null() | ({})")
_FAILING = 8  # rows on which a condition fails that are looked for
Ask = Callable[[Any, pa.Table], list[int]]


def _in_datafusion(words: Any, table: pa.Table) -> list[int]:
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    empty = [pa.RecordBatch.from_pylist([], schema=table.schema)]
    context.register_record_batches("t", [table.combine_chunks().to_batches() or empty])
    kept = context.table("t").filter(words).select(datafusion.col(f'"{ROW}"'))
    return list(kept.to_arrow_table()[ROW].to_pylist())


def _in_polars(words: Any, table: pa.Table) -> list[int]:
    return list(pl.DataFrame(table).filter(words)[ROW].to_list())


def _in_pyarrow(words: Any, table: pa.Table) -> list[int]:
    found = ds.dataset(table).to_table(columns=[ROW], filter=words, use_threads=False)
    return list(found[ROW].to_pylist())


def _in_substrait(words: Any, table: pa.Table) -> list[int]:
    (expression,) = ps.deserialize_expressions(words).expressions.values()
    return list(table.filter(expression)[ROW].to_pylist())


def _in_dnf(words: Any, table: pa.Table) -> list[int]:
    return list(table.filter(pq.filters_to_expression(words))[ROW].to_pylist())


def _of_api(ask: Ask) -> Ask:
    """Raise as a judge does: what fails over no row is lacking, the rest fails on values."""

    def kept(words: Any, table: pa.Table) -> list[int]:
        whole = numbered(table)
        for part, meaning in ((whole.slice(0, 0), LackingError), (whole, ValueFailure)):
            try:
                found = ask(words, part)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a panic of Rust is no `Exception`
                raise meaning(f"{type(error).__name__}: {error}") from error
        return sorted(found)

    return kept


TARGETS: Mapping[str, Ask] = {
    "duckdb": DuckDb().kept,
    "datafusion": DataFusion().kept,
    "postgres": Postgres().kept,
    "datafusion_exprs": _of_api(_in_datafusion),
    "polars": _of_api(_in_polars),
    "pyarrow_exprs": _of_api(_in_pyarrow),
    "substrait": _of_api(_in_substrait),
    "delta_dnf": _of_api(_in_dnf),
}
_SOURCES: Mapping[str, str] = {"pyarrow": "pyarrow_exprs"}
# Failures of a target alone that its page of `docs/reference/bridges` names, or of the judge.
KNOWN: Mapping[str, Sequence[str]] = {
    "datafusion": (r"out of range", r"Cannot cast .* to Timestamp"),  # it takes nanoseconds
    "datafusion_exprs": (r"out of range", r"Cannot cast .* to Timestamp"),
    "postgres": (r"date value out of range",),  # of the client's Python
    "substrait": (r"not an expected enum value", r"have a value argument at index 1"),
}


@dataclass(frozen=True)
class Condition:
    """A condition in a source's language, over rows that its engine has judged."""

    case: Case
    words: Any
    table: pa.Table
    bound: BoundPredicate
    kept: frozenset[int]
    good: tuple[int, ...]  # rows on which the source does not fail

    @property
    def source(self) -> str:
        """The name of its language."""
        return _SOURCES.get(ENGINES[self.case.engine].dialect, ENGINES[self.case.engine].dialect)

    def fails_in_part(self, row: int) -> bool:
        """Whether a term fails here on a row, which the source's optimiser may have left out."""
        try:
            return has_failing_term(self.bound, self.table.slice(row, 1).to_batches()[0])
        except RowsieveError:
            return True


@dataclass
class Outcome:
    """What came of a translation: `exact`, `superset` or `unsupported`, and the findings."""

    kind: str = "unsupported"
    findings: list[str] = field(default_factory=list)


def condition_of(case: Case) -> Condition | None:
    """Return the case as a condition that its engine has judged; None if it cannot be one."""
    engine = ENGINES[case.engine]
    chance = random.Random(case.name)
    table = _rows(case.types, chance)
    source = bridge_named(_SOURCES.get(engine.dialect, engine.dialect))
    schema = schema_of(table.schema)[0]
    for text in (case.text, *_compared(case.text, chance, is_sql=engine.is_sql)):
        try:
            words = engine.language(text)
            read = source.reads(words, schema)
            if read.expression is None or read.residual is not None:
                continue
            bound = bind(read.expression, schema, source.semantics, simplified=False)
            judged = replaced(case, text), words, table, bound
            kept, failed = _judged(TARGETS[source.name], words, table, range(table.num_rows))
        except (RowsieveError, LackingError):
            continue
        except Exception:  # whatever an engine's API raises
            if engine.is_sql:
                raise
            continue
        good = tuple(row for row in range(table.num_rows) if row not in failed)
        return Condition(*judged, kept, good) if good else None
    return None


def targets_of(condition: Condition) -> list[str]:
    """Return the other languages whose engines hold the rows.

    The client of PostgreSQL has no years before 1 or after 9999.
    """
    held = {*ENGINES["postgres"].types, *ENGINES["postgres"].more_types}
    within = held.issuperset(decoded(condition.case.types))
    return [name for name in TARGETS if name != condition.source and (within or name != "postgres")]


def replaced(case: Case, text: str) -> Case:
    """Return a case of the same engine and types."""
    return Case(case.engine, case.types, text)


def translated(condition: Condition, target: str) -> Outcome:
    """Translate a condition, and hold the rows that the target keeps against the source's."""
    table, good = condition.table, condition.good
    made = rs.translate(condition.words, condition.source, target=target, schema=table.schema)
    if made.expression is None:
        lacking = [] if made.notes and all(map(str, made.notes)) else ["no reason is given"]
        return Outcome("unsupported", lacking)
    outcome = Outcome(made.exactness.name.lower())
    try:
        kept, failed = _judged(TARGETS[target], made.expression, table, good)
    except LackingError as error:
        if not _is_known(target, str(error)):
            outcome.findings.append(f"it lacks what is written: {str(error)[:300]}")
        return outcome
    wanted = condition.kept & (set(good) - failed.keys())
    is_exact = made.exactness is rs.Exactness.EXACT
    if is_exact:
        alone = [
            f"{shown_row(table, row)}: fails there alone: {why[:300]}"
            for row, why in failed.items()
            if why and not _is_known(target, why) and not condition.fails_in_part(row)
        ]
        outcome.findings += alone[:3]
    wrong = {"lost": wanted - kept, "gained": kept - wanted if is_exact else set()}
    if not is_exact and made.residual is not None:
        rest, unsure = _judged(
            TARGETS[condition.source], made.residual, table, sorted(set(good) - failed.keys())
        )
        wrong["left by the residual"] = (kept & rest) ^ (wanted - unsure.keys())
    for name, numbers in wrong.items():
        outcome.findings += [f"{shown_row(table, row)}: {name}" for row in sorted(numbers)[:3]]
    return outcome


def _is_known(target: str, failure: str) -> bool:
    return any(re.search(pattern, failure) for pattern in KNOWN.get(target, ()))


def _rows(types: str, chance: random.Random) -> pa.Table:
    table = rows(decoded(types))
    if table.num_rows <= _ROWS:
        return table.combine_chunks()
    return taken(table, sorted(chance.sample(range(table.num_rows), _ROWS))).combine_chunks()


def _compared(text: str, chance: random.Random, *, is_sql: bool) -> tuple[str, str]:
    """Return a condition on the value of a text, and a tree of two."""
    if is_sql:
        constants: Sequence[str] = ("0", "1", "-1", "2.5", "0.1", "100", "'a'", "''", "'1'", "a")
        relations: Sequence[str] = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
        forms = (*(f"({{}}) {each} {{}}" for each in relations), "({}) IN (1, 0, {})")
        trees: Sequence[str] = _SQL_TREES
    else:
        constants, trees = python_expressions.CONSTANTS, _PYTHON_TREES
        forms = tuple(f"({{}}) {each} {{}}" for each in ("==", "!=", "<", "<=", ">", ">="))
    one, other = (chance.choice(forms).format(text, chance.choice(constants)) for _ in range(2))
    tree = chance.choice(trees).format(one, other)
    return (one, tree) if chance.random() < _ALONE else (tree, one)


def _judged(
    ask: Ask, words: Any, table: pa.Table, numbers: Sequence[int]
) -> tuple[frozenset[int], dict[int, str]]:
    """Return the rows kept, and why others fail; "" for rows that share a question with them."""
    numbers = list(numbers)
    try:
        kept = ask(words, taken(table, numbers)) if numbers else []
        return frozenset(numbers[place] for place in kept), {}
    except ValueFailure as error:
        if len(numbers) == 1:
            return frozenset(), {numbers[0]: str(error)}
    half = len(numbers) // 2
    kept_first, failed = _judged(ask, words, table, numbers[:half])
    if len(failed) > _FAILING:
        return kept_first, {**dict.fromkeys(numbers[half:], ""), **failed}
    kept_last, others = _judged(ask, words, table, numbers[half:])
    return kept_first | kept_last, failed | others


if __name__ == "__main__":
    named, target = sys.argv[1:]
    asked = condition_of(Case.named(named))
    sys.stdout.write(f"{asked and translated(asked, target)}\n")
