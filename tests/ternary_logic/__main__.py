"""Ask conditions over the tables of some seeds, or replay one pair by its name."""

from __future__ import annotations

import signal
import sys
from collections.abc import Collection
from contextlib import nullcontext

from rowsieve.providers.spark import spark_session
from tests.bridges.against_engines.judges import judging
from tests.ternary_logic.engine_texts import check_texts
from tests.ternary_logic.pairs import Report, check_table, names_of
from tests.ternary_logic.readers import ALONE, WITH_SPARK


def report(first: int, last: int, conditions: int, readers: Collection[str] = ALONE) -> None:
    """Write each finding of these seeds, and the sums at the end, also if it is stopped."""
    found = Report()
    try:
        for seed in range(first, last):
            _check(seed, conditions, readers, found)
    finally:
        _write(f"{found.compared.total()} pairs, {len(found.findings)} findings")
        _write(f"compared {dict(found.compared)}; skipped {dict(found.skipped)}")


def _check(seed: int, conditions: int, readers: Collection[str], found: Report) -> None:
    seen = len(found.findings)
    try:
        check_table(seed, range(conditions), readers, found)
        check_texts(seed, range(conditions), readers, found)
    finally:
        for finding in found.findings[seen:]:
            _write(str(finding))
    if seed % 5 == 4:
        _write(f"seed {seed}: {found.compared.total()} pairs, {len(found.findings)} findings")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def replay(pair: str) -> None:
    """Write what differs in a pair."""
    seed, number, reader = names_of(pair.removeprefix("texts/"))
    replayed = Report()
    check = check_texts if pair.startswith("texts/") else check_table
    check(seed, [number], [reader], replayed)
    _write("\n".join(map(str, replayed.findings)) or f"no difference; {replayed.skipped}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    first, *others = sys.argv[1:]  # a pair, or first seed, last seed, conditions, and "spark"
    with_spark = first.rpartition("/")[2] in WITH_SPARK or "spark" in others
    with judging(spark_session("ternary logic")) if with_spark else nullcontext():
        if "/" in first:
            replay(first)
        else:
            last, conditions = map(int, others[:2])
            report(int(first), last, conditions, WITH_SPARK if with_spark else ALONE)
