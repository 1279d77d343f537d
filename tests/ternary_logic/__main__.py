"""Ask conditions over the tables of some seeds, or replay one pair by its name."""

from __future__ import annotations

import sys

from tests.ternary_logic.engine_texts import check_texts
from tests.ternary_logic.pairs import Report, check_table, names_of
from tests.ternary_logic.readers import READERS


def report(first: int, last: int, conditions: int) -> None:
    """Write each finding of these seeds, and the sums at the end."""
    found = Report()
    for seed in range(first, last):
        seen = len(found.findings)
        check_table(seed, range(conditions), READERS, found)
        check_texts(seed, range(conditions), READERS, found)
        for finding in found.findings[seen:]:
            _write(str(finding))
        if seed % 5 == 4:
            _write(f"seed {seed}: {found.compared.total()} pairs, {len(found.findings)} findings")
    _write(f"{found.compared.total()} pairs, {len(found.findings)} findings")
    _write(f"compared {dict(found.compared)}; skipped {dict(found.skipped)}")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if "/" in sys.argv[1]:
        seed, number, reader = names_of(sys.argv[1].removeprefix("texts/"))
        replayed = Report()
        check = check_texts if sys.argv[1].startswith("texts/") else check_table
        check(seed, [number], [reader], replayed)
        _write("\n".join(map(str, replayed.findings)) or f"no difference; {replayed.skipped}")
    else:
        report(*map(int, sys.argv[1:]))  # first seed, last seed, conditions of each
