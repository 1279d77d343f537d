"""The plot of all peers beside us: `python -m benchmarks.peers_plot`.

It draws the CPU table of the page on benchmarks, and our figures of the same machine and day in
`history.csv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from benchmarks import history
from benchmarks.measure import Sample, Series
from benchmarks.plot import draw
from benchmarks.result import Case

PAGE: Final = history.ROOT / "docs" / "reference" / "benchmarks.md"
PLOT: Final = PAGE.with_name("peers.svg")
TABLE: Final = re.compile(
    r"### Peers, as measured\n.*?CPU:\n\n(?P<rows>(?:\|[^\n]*\n)+)", re.DOTALL
)
UNITS: Final = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
ABSENT: Final = "-"


def cases() -> list[Case]:
    """Return each case of the table that we have a figure for, ours first."""
    ours = {figure.case: figure.cpu_s for figure in history.read()}
    return [
        Case(name, [_series(history.OURS, ours[name]), *peers])
        for name, peers in _rows(PAGE.read_text("utf-8"))
        if name in ours and peers
    ]


def _rows(page: str) -> Iterator[tuple[str, list[Series]]]:
    """Yield the name of each case with the peers that were measured."""
    table = TABLE.search(page)
    assert table is not None
    header, _, *rows = (_cells(row) for row in table["rows"].splitlines())
    for name, *values in rows:
        pairs = zip(header[1:], values, strict=True)
        yield name, [_series(peer, _seconds(value)) for peer, value in pairs if value != ABSENT]


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def _seconds(text: str) -> float:
    number, unit = text.split(" ")
    return float(number) * UNITS[unit]


def _series(system: str, cpu_s: float) -> Series:
    return Series(system, samples=[Sample(cpu_s=cpu_s)])


if __name__ == "__main__":
    PLOT.write_text(draw(cases()), "utf-8")
