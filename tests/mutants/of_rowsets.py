"""Row sets, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

_LAWS = ("tests/predicate/rowset/test_rowset.py", "tests/predicate/rowset/test_rowset_laws.py")
_BYTES = ("tests/predicate/rowset/test_rowset_bytes.py",)
RANGES, BITMAP, CODEC, ROARING, ROWSET = (
    f"predicate/rowset/{name}.py"
    for name in ("ranges", "bitmap", "serialized", "roaring", "rowset")
)
SUITES = {RANGES: _LAWS, BITMAP: _LAWS, CODEC: _BYTES, ROARING: _LAWS, ROWSET: _LAWS}

MUTANTS = (
    Mutant(
        RANGES,
        "ranges that touch stay two",
        "apart = starts[1:] > reach[:-1]",
        "apart = starts[1:] >= reach[:-1]",
    ),
    Mutant(
        RANGES,
        "a range is forgotten that an earlier one outreaches",
        "reach = np.maximum.accumulate(stops)",
        "reach = stops",
    ),
    Mutant(
        RANGES,
        "a range that ends where another begins meets it",
        'begin = np.searchsorted(many.stops, few.starts, side="right")',
        'begin = np.searchsorted(many.stops, few.starts, side="left")',
    ),
    Mutant(
        RANGES,
        "a range is not cut where the other begins",
        "np.maximum(few.starts[mine], many.starts[theirs])",
        "few.starts[mine]",
    ),
    Mutant(
        RANGES, "the last row is not subtracted from", "self.span[1])) if", "self.span[1] - 1)) if"
    ),
    Mutant(
        RANGES,
        "a complement ends with the last range",
        "np.concatenate((self.starts, [row_count]))",
        "np.concatenate((self.starts, self.stops[-1:]))",
    ),
    Mutant(
        RANGES,
        "a slice keeps the row after it",
        'end = np.searchsorted(self.starts, stop, side="left")',
        'end = np.searchsorted(self.starts, stop, side="right")',
    ),
    Mutant(RANGES, "stops count as held", "(ids < self.stops[", "(ids <= self.stops["),
    Mutant(RANGES, "a mask shows what is not held", "inside[1::2] = True", "inside[0::2] = True"),
    Mutant(
        RANGES,
        "a mask's last row is forgotten",
        "tail = [len(mask)] if len(mask) and mask[-1] else []",
        "tail = [len(mask) - 1] if len(mask) and mask[-1] else []",
    ),
    Mutant(
        BITMAP,
        "an intersection is a union",
        "_optimized(self.bitmap & other.bitmap)",
        "_optimized(self.bitmap | other.bitmap)",
    ),
    Mutant(
        BITMAP,
        "the sides of a difference are swapped",
        "self.bitmap - other.bitmap",
        "other.bitmap - self.bitmap",
    ),
    Mutant(
        BITMAP,
        "a complement has a row too many",
        "self.bitmap.flip(0, row_count)",
        "self.bitmap.flip(0, row_count + 1)",
    ),
    Mutant(
        BITMAP,
        "a slice has a row too many",
        "window.add_range(start, stop)",
        "window.add_range(start, stop + 1)",
    ),
    Mutant(BITMAP, "a slice is not renumbered", ".shift(-start))", ")"),
    Mutant(
        ROARING,
        "a run that crosses containers restarts where it began",
        "lows = np.where(nth == 0, starts[run] & _LOW, 0)",
        "lows = starts[run] & _LOW",
    ),
    Mutant(
        ROARING,
        "a run fills its last container",
        "highs = np.where(keys == final[run], lasts[run] & _LOW, _LOW)",
        "highs = np.full(len(keys), _LOW)",
    ),
    Mutant(
        ROARING,
        "the last possible row is lost",
        "stops = np.append(stops, ID_LIMIT)",
        "starts = starts[: len(stops)]",
    ),
    Mutant(
        CODEC,
        "damage is not noticed",
        "if _CHECKSUM.pack(xxhash.xxh3_64_intdigest(body)) != checksum:",
        "if not checksum:",
    ),
    Mutant(
        CODEC,
        "the rows of another source are taken",
        "if stored_row_count != row_count:",
        "if stored_row_count > 2**40:",
    ),
    Mutant(
        CODEC,
        "a row beyond the source is taken",
        "rows.span[1] > row_count",
        "rows.span[1] > row_count + 1",
    ),
    Mutant(
        CODEC,
        "ranges that touch are taken",
        "(firsts[1:] <= stops[:-1]).any()",
        "(firsts[1:] < stops[:-1]).any()",
    ),
    Mutant(
        ROWSET,
        "sets of different sources meet (trap T34)",
        "if self.row_count != other.row_count:\n            raise",
        "if self.row_count == -1:\n            raise",
    ),
    Mutant(
        ROWSET,
        "the last row group is as long as the others",
        "np.minimum(stops * rows, row_count)",
        "stops * rows",
    ),
    Mutant(
        ROWSET,
        "sets are equal if their sources are",
        "return as_ranges(mine).same(as_ranges(theirs))",
        "return True",
    ),
)
