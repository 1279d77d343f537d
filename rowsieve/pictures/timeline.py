"""A timeline of versions: what each commit wrote and deleted, and what keeps the versions.

Up to `MAX_MARKS` versions are drawn one by one. More are drawn in runs of neighbours, and the
picture says so. Each mark is a link to the row of the table that has the call which opens it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rowsieve.pictures.data_table import MAX_ROWS, Raw, code_cell, data_table, scrolled, size_cell
from rowsieve.pictures.markup import Markup, count, element, join, percent, text
from rowsieve.pictures.outcomes import swatches
from rowsieve.pictures.page import Picture

MAX_MARKS: Final = 120
_UP, _DOWN, _LABELS = 90.0, 60.0, 24.0  # pixels above and below the line, and for labels
_KINDS: Final = {"data": "rows in", "rewrite": "rewritten, no row changed", "deleted": "rows out"}
_CLASSES: Final = {"data": "read", "rewrite": "merged", "deleted": "hides"}
_SHOWN_LABELS: Final = 12


class VersionMark(NamedTuple):
    """A version: its commit, what keeps it (`labels`), and the call that opens it."""

    version: int
    when: str
    operation: str
    rows_in: int
    rows_out: int
    parts_in: int
    parts_out: int
    bytes_in: int | None = None
    bytes_out: int | None = None
    is_rewrite: bool = False
    labels: tuple[str, ...] = ()
    call: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(Picture):
    """The newest versions of a table, oldest first; `floor` is the oldest that can be read."""

    table: str
    versions: Sequence[VersionMark]
    floor: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is shown."""
        return f"Versions of {self.table}"

    @property
    def summary(self) -> str:
        """The range, the rows in and out, and the counts by operation."""
        if not self.versions:
            return "no versions"
        first, last = self.versions[0].version, self.versions[-1].version
        by = Counter(mark.operation for mark in self.versions)
        rows_in = sum(mark.rows_in for mark in self.versions if not mark.is_rewrite)
        rows_out = sum(mark.rows_out for mark in self.versions if not mark.is_rewrite)
        return (
            f"versions {first:,} to {last:,}: {count(rows_in, 'row')} in, {rows_out:,} out; "
            + ", ".join(f"{number:,} {name}" for name, number in by.most_common(8))
            + ("" if self.floor is None else f"; versions before {self.floor:,} cannot be read")
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "table": self.table,
            "floor": self.floor,
            "notes": list(self.notes),
            "versions": [mark._asdict() for mark in self.versions],
        }

    def body(self, ident: str) -> Markup:
        """Draw the versions and their table."""
        if not self.versions:
            return element("p", text("There is no version to show."))
        runs = _runs(self.versions)
        meanings = [(_CLASSES[kind], words) for kind, words in _KINDS.items()]
        if any(mark.labels for mark in self.versions):
            meanings.append(("weak", "dot: a tag, branch, lease or checkpoint of this version"))
        past = element("a", text("The versions as a table"), href=f"#{ident}-table")
        pieces = [swatches(meanings), element("p", past), self._drawing(runs, ident)]
        per = len(runs[0])
        if per > 1:
            words = f"{len(self.versions):,} versions; each bar has the sums of up to {per:,}"
            pieces.append(element("p", text(words)))
        pieces += [element("p", text(note, 400)) for note in self.notes]
        pieces.append(self._table(ident))
        return join(pieces)

    def _drawing(self, runs: Sequence[Sequence[VersionMark]], ident: str) -> Markup:
        sums = [_Sums.of(run) for run in runs]
        most = max((max(each.rows_in, each.rows_out) for each in sums), default=0)
        step = 1.0 / len(runs)
        zero = _LABELS + _UP
        listed = {mark.version for mark in self.versions[-MAX_ROWS:]}
        marks = [
            _mark(run, each, (place * step, step), most, ident, is_listed=run[-1].version in listed)
            for place, (run, each) in enumerate(zip(runs, sums, strict=True))
        ]
        line = element("line", x1="0%", x2="100%", y1=zero, y2=zero, class_="rule")
        first, last = self.versions[0].version, self.versions[-1].version
        height = zero + _DOWN + 18
        words = "heights are logarithms of rows"
        return element(
            "svg",
            element("title", text(self.title), id=f"{ident}-t"),
            element("desc", text(f"{self.summary}; {words}", 600), id=f"{ident}-d"),
            line,
            *marks,
            element("text", text(f"version {first:,}"), x="0%", y=height - 4),
            element(
                "text", text(words), x="50%", y=height - 4, text_anchor="middle", class_="wide"
            ),
            element("text", text(f"{last:,}"), x="100%", y=height - 4, text_anchor="end"),
            role="group",
            height=height,
            aria_labelledby=f"{ident}-t {ident}-d",
        )

    def _table(self, ident: str) -> Markup:
        newest = list(reversed(self.versions[-MAX_ROWS:]))
        has_bytes = any(mark.bytes_in is not None for mark in newest)
        headings = ["version", "time", "operation", "rows in", "rows out"]
        headings += ["bytes in", "bytes out"] if has_bytes else []
        headings += ["parts", "kept by", "call that opens it"]
        rows = [
            (
                mark.version,
                Raw(text(mark.when), "nowrap"),
                mark.operation,
                mark.rows_in,
                mark.rows_out,
                *((size_cell(mark.bytes_in), size_cell(mark.bytes_out)) if has_bytes else ()),
                f"+{mark.parts_in:,} -{mark.parts_out:,}",
                ", ".join(mark.labels),
                code_cell(mark.call),
            )
            for mark in newest
        ]
        ids = [f"{ident}-v{mark.version}" for mark in newest]
        table = data_table(
            "Versions, newest first",
            headings,
            rows,
            total=len(self.versions),
            ids=ids,
            wide=("bytes in", "bytes out", "parts"),
        )
        return scrolled("Versions as a table", table, ident=f"{ident}-table")


class _Sums(NamedTuple):
    rows_in: int
    rows_out: int
    is_rewrite: bool

    @classmethod
    def of(cls, run: Sequence[VersionMark]) -> _Sums:
        """The sums of a run; rewrites count only where nothing else happened."""
        changes = [mark for mark in run if not mark.is_rewrite]
        chosen = changes or run
        rows_in, rows_out = sum(m.rows_in for m in chosen), sum(m.rows_out for m in chosen)
        return cls(rows_in, rows_out, not changes)


def _runs(versions: Sequence[VersionMark]) -> list[Sequence[VersionMark]]:
    per = math.ceil(len(versions) / MAX_MARKS)
    return [versions[start : start + per] for start in range(0, len(versions), per)]


def _mark(
    run: Sequence[VersionMark],
    sums: _Sums,
    place: tuple[float, float],
    most: int,
    ident: str,
    *,
    is_listed: bool,
) -> Markup:
    """The bars of a run, above and below the line, as a link to its row."""
    start, step = place
    zero = _LABELS + _UP
    x, width = percent(start + step * 0.12), percent(min(step * 0.76, 0.05))
    kind = "rewrite" if sums.is_rewrite else "data"
    up, down = _height(sums.rows_in, most, _UP), _height(sums.rows_out, most, _DOWN)
    bars = [
        element("rect", x=x, width=width, y=zero - up, height=up, class_=f"mark {_CLASSES[kind]}")
    ]
    if down:
        bars.append(element("rect", x=x, width=width, y=zero, height=down, class_="mark hides"))
    labels = [label for mark in run for label in mark.labels]
    if labels:
        centre = percent(start + step * 0.12 + min(step * 0.38, 0.025))
        bars.append(element("circle", cx=centre, cy=10, r=5, class_="mark weak"))
    title = _run_title(run, sums, labels)
    content = join((element("title", text(title, 400)), *bars))
    if not is_listed:
        return element("g", content)
    return element("a", content, href=f"#{ident}-v{run[-1].version}", aria_label=title)


def _height(rows: int, most: int, pixels: float) -> float:
    if rows <= 0:
        return 2.0 if pixels == _UP else 0.0
    return max(pixels * math.log1p(rows) / math.log1p(most), 3.0)


def _run_title(run: Sequence[VersionMark], sums: _Sums, labels: Sequence[str]) -> str:
    if len(run) == 1:
        head = f"version {run[0].version}, {run[0].operation}, {run[0].when}"
    else:
        head = f"versions {run[0].version} to {run[-1].version}"
    named = f"; {', '.join(labels[:_SHOWN_LABELS])}" if labels else ""
    call = f"; {run[-1].call}" if run[-1].call else ""
    return f"{head}: {sums.rows_in:,} rows in, {sums.rows_out:,} out{named}{call}"
