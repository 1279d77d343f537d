"""Run the cases of an engine, or replay one by its name."""

from __future__ import annotations

import collections
import itertools
import sys
from contextlib import AbstractContextManager, nullcontext

from rowsieve.providers.spark import spark_session
from tests.bridges.against_engines.catalogues import names_of
from tests.bridges.against_engines.compare import Case, compared, compared_all
from tests.bridges.against_engines.engines import ENGINES, WITH_SPARK
from tests.bridges.against_engines.failures import unjudged
from tests.bridges.against_engines.generator import cases
from tests.bridges.against_engines.judges import judging

_SHOWN_AFTER = 500  # cases


def with_session(engine: str) -> AbstractContextManager[None]:
    """Start the session that an engine of Spark's is asked in; nothing for other engines."""
    if engine not in WITH_SPARK:
        return nullcontext()
    return judging(spark_session("against engines"))


def report(engine: str, step: int, first: int) -> None:
    """Write each difference in every `step`-th case, and the sums at the end.

    A failure of one side alone counts as a difference if it is of no known kind.
    """
    total, differing, counts = 0, 0, collections.Counter[str]()
    dialect = ENGINES[engine].dialect
    every = cases(engine, names_of(engine))
    for case, verdict in compared_all(list(itertools.islice(every, first, None, step))):
        total += verdict.compared
        if sum(counts.values()) % _SHOWN_AFTER == _SHOWN_AFTER - 1:
            _write(f"{total} values compared so far; cases: {dict(counts)}")
        counts[verdict.skipped.partition(":")[0] or "compared"] += 1
        alone = unjudged(case, dialect, verdict.fails_here, verdict.fails_there)
        differing += bool(verdict.findings or alone)
        for kind, found in (("differs", verdict.findings), ("fails alone", alone)):
            if found:
                _write(f"{kind} {len(found)} {case.name}: {found[0]}")
    _write(f"{total} values compared, {differing} cases differ; cases: {dict(counts)}")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    named, *numbers = sys.argv[1:]  # a case's name, or an engine, a step and the first case
    if "|" in named:
        with with_session(named.partition("|")[0]):
            _write(str(compared(Case.named(named))))
    elif named not in ENGINES:
        sys.exit(
            f"{named!r} is neither a case, such as 'duckdb|f64|a > 1', nor one of {[*ENGINES]}"
        )
    else:
        places = [*map(int, numbers), 1, 0][:2] if len(numbers) != 1 else [int(numbers[0]), 0]
        with with_session(named):
            report(named, *places)
