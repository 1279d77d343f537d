"""Run the cases of an engine, or replay one by its name."""

from __future__ import annotations

import collections
import itertools
import sys

from tests.bridges.against_engines.catalogues import names_of
from tests.bridges.against_engines.compare import Case, compared
from tests.bridges.against_engines.generator import cases


def report(engine: str, step: int, first: int) -> None:
    """Write each difference in every `step`-th case, and the sums at the end."""
    total, counts = 0, collections.Counter[str]()
    every = cases(engine, names_of(engine))
    for case in itertools.islice(every, first, None, step):
        verdict = compared(case)
        total += verdict.compared
        counts[verdict.skipped.partition(":")[0] or "compared"] += 1
        for kind, found in (
            ("differs", verdict.findings),
            ("fails here", verdict.fails_here),
            ("fails there", verdict.fails_there),
        ):
            if found:
                _write(f"{kind} {len(found)} {case.name}: {found[0]}")
    _write(f"{total} values compared; cases: {dict(counts)}")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    named, *numbers = sys.argv[1:]  # a case's name, or an engine, a step and the first case
    if "|" in named:
        _write(str(compared(Case.named(named))))
    else:
        places = [*map(int, numbers), 1, 0][:2] if len(numbers) != 1 else [int(numbers[0]), 0]
        report(named, *places)
