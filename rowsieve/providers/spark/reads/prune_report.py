"""The report of pruning a Spark query: skipped parts, conditions used, and why not more."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

_LONGEST: Final = 200  # characters of a condition that are shown


class Refusal(Enum):
    """The reason why a query is not changed; the value is what `str()` of the report prints."""

    CLIENT = "a Spark Connect client has no plan of it"
    STREAM = "it is a stream"
    RANDOM = "it is not deterministic"
    TIME = "it depends on the time or the user: it may run later than it is pruned"
    NO_READS = (
        "no read of a table was found; those in cached frames, in subqueries of expressions, below "
        "operators over partitions or by format('rowsieve') are not"
    )
    FAILS = "Spark cannot plan it"
    UNKNOWN = "Spark's plan is not what is known here"


@dataclass(frozen=True, slots=True)
class PrunedUse:
    """An occurrence of a read: the conditions that prune it, and those that do not, in order.

    `reason` says why the first of `unused` is not used; those after it could hide its errors.
    """

    used: tuple[str, ...]
    unused: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class PrunedRead:
    """A read of a table: how many parts it has without the query's conditions, and with them."""

    uri: str
    version: int
    parts: int
    parts_read: int
    uses: tuple[PrunedUse, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The reads of a query; `str()` sums them up. `refusal` is the reason if it is not changed."""

    reads: tuple[PrunedRead, ...]
    refusal: Refusal | None = None
    detail: str = ""

    def __str__(self) -> str:
        lines = []
        if self.refusal is not None:
            detail = f" ({self.detail})" if self.detail else ""
            lines.append(f"the query is left as it is: {self.refusal.value}{detail}")
        for read in self.reads:
            counts = f"{read.parts_read:,} of {read.parts:,} parts"
            lines.append(f"{read.uri} version {read.version}: {counts}")
            for use in read.uses:
                lines += [f"  by      {text}" for text in use.used]
                lines += [f"  not by  {text}: {use.reason}" for text in use.unused[:1]]
                lines += [f"  not by  {text}: it comes later" for text in use.unused[1:]]
                if not use.used and not use.unused:
                    lines.append("  without a condition")
        return "\n".join(lines)


def shortened(text: str) -> str:
    """The first line of the text, or its beginning."""
    line = text.partition("\n")[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
