"""Our figures by commit: `python -m benchmarks.history add RESULTS.json`, then `plot`.

`add` appends the median CPU of each of our cases in a run of `benchmarks.suite` to `history.csv`;
`plot` draws them, a line per case, commits from left to right, on a logarithmic scale. Runs of one
machine and size are compared; the machine of each is in the file.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any, Final
from xml.sax.saxutils import escape

import msgspec

from benchmarks.markdown import duration
from benchmarks.plot import OURS_COLOUR, PEER_COLOUR, TEXT_COLOUR

ROOT: Final = Path(__file__).parents[1]
FIGURES: Final = Path(__file__).with_name("history.csv")
PLOT: Final = ROOT / "docs" / "reference" / "history.svg"
OURS: Final = "rowsieve"
LEFT, WIDTH, NAMES, TOP, HEIGHT, BOTTOM = 76, 420, 220, 10, 360, 48
AXES: Final = ("commit, older to newer", "CPU of a case, median, logarithmic")
COLOURS: Final = (OURS_COLOUR, PEER_COLOUR, "#5aa469", "#b565a7", "#c0504d", "#7f7f7f")


@dataclass(frozen=True, slots=True)
class Figure:
    """The median CPU of one of our cases at a commit."""

    commit: str
    date: str
    machine: str
    sizes: str
    case: str
    cpu_s: float


def figures_of(run: Mapping[str, Any], commit: str, sizes: str) -> list[Figure]:
    """Our figures in the JSON of a run."""
    machine = f"{run['machine']['cpu']}, {run['machine']['cores']} cores"
    return [
        Figure(
            commit,
            run["machine"]["date"][:10],
            machine,
            sizes,
            case["name"],
            round(median(sample["cpu_s"] for sample in series["samples"]), 6),
        )
        for case in run["found"]
        for series in case["series"]
        if series["system"] == OURS and series["samples"]
    ]


def read() -> list[Figure]:
    """The figures of the file, in its order, which is that of the runs."""
    with FIGURES.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [
        Figure(commit, date, machine, sizes, case, float(cpu_s))
        for commit, date, machine, sizes, case, cpu_s in rows
    ]


def append(figures: Iterable[Figure]) -> None:
    """Append figures to the file."""
    with FIGURES.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(map(astuple, figures))


def draw(figures: Sequence[Figure]) -> str:
    """The plot as the text of an SVG file; figures are in the order of their commits."""
    commits = list(dict.fromkeys(figure.commit for figure in figures))
    cases = list(dict.fromkeys(figure.case for figure in figures))
    seconds = [figure.cpu_s for figure in figures]
    low, high = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))
    high = max(high, low + 1)

    def x(commit: str) -> float:
        return LEFT + WIDTH * (commits.index(commit) + 1) / (len(commits) + 1)

    def y(cpu_s: float) -> float:
        return TOP + HEIGHT * (high - math.log10(cpu_s)) / (high - low)

    lines = [
        _line(LEFT, y(10.0**power), LEFT + WIDTH, duration(10.0**power))
        for power in range(low, high + 1)
    ]
    lines += [_text(x(commit), TOP + HEIGHT + 18, commit, "middle") for commit in commits]
    ends = _apart([y([f for f in figures if f.case == case][-1].cpu_s) for case in cases])
    for number, (case, end) in enumerate(zip(cases, ends, strict=True)):
        points = [(x(each.commit), y(each.cpu_s)) for each in figures if each.case == case]
        colour = COLOURS[number % len(COLOURS)]
        way = " ".join(f"{px:.0f},{py:.1f}" for px, py in points)
        lines.append(f'<polyline points="{way}" fill="none" stroke="{colour}"/>')
        lines += [
            f'<circle cx="{px:.0f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in points
        ]
        lines.append(f'<g fill="{colour}">{_text(LEFT + WIDTH + 8, end + 4, case, "start")}</g>')
    across, up = AXES
    lines.append(_text(LEFT + WIDTH / 2, TOP + HEIGHT + 38, across, "middle"))
    middle = TOP + HEIGHT / 2
    label = _text(0, 0, up, "middle")
    lines.append(f'<g transform="translate(14 {middle:.0f}) rotate(-90)">{label}</g>')
    width, height = LEFT + WIDTH + NAMES, TOP + HEIGHT + BOTTOM
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{TEXT_COLOUR}">'
    )
    return "\n".join([head, *lines, "</svg>", ""])


def _apart(places: Sequence[float], least: float = 13.0) -> list[float]:
    """Places of labels moved down until none covers another; the order of the values is kept."""
    moved = dict.fromkeys(range(len(places)), 0.0)
    before = -math.inf
    for number in sorted(moved, key=lambda each: places[each]):
        before = moved[number] = max(places[number], before + least)
    return list(moved.values())


def _line(left: float, y: float, right: float, label: str) -> str:
    line = f'<path d="M{left} {y:.0f} H{right}" stroke="{TEXT_COLOUR}" stroke-opacity="0.3"/>'
    return line + _text(left - 6, y + 4, label, "end")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def main() -> None:
    """Add a run to the figures, or draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="append the figures of a run")
    add.add_argument("results", type=Path)
    add.add_argument("--sizes", default="full")
    commands.add_parser("plot", help=f"draw {PLOT.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.command == "add":
        command = ["git", "rev-parse", "--short=8", "HEAD"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        run = msgspec.json.decode(options.results.read_bytes())
        append(figures_of(run, commit.stdout.strip(), options.sizes))
    PLOT.write_text(draw(read()), "utf-8")


HEADER: Final = tuple(field.name for field in fields(Figure))

if __name__ == "__main__":
    main()
