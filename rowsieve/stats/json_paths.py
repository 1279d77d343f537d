"""Collects statistics of JSON paths: kinds, and bounds of numbers and strings.

msgspec decodes documents into classes that have the wanted keys only; it checks and skips the rest.
Each of the first elements of a list has a path of its own, and so have all elements together. The
empty path requests the paths that the first documents of a part have.

Soundness: a document that is malformed, nests too deep or has a number out of the range of doubles
makes every path of its part `OTHER`. Engines choose differently among equal keys of one object: all
their values count, and the path may also be missing (invariant 29). Numbers become the nearest
doubles; a reader that needs exact bounds must widen them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import msgspec
import pyarrow as pa

from rowsieve.stats.json_documents import NO_KIND, PathTree, decode_documents
from rowsieve.stats.json_kinds import (
    ANY_INDEX,
    INDICES,
    INT64,
    JsonKind,
    Path,
    is_plain,
    path_subject,
)
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.stats.values import Values, lower_bound, upper_bound

MAX_PATHS: Final = 32
MAX_KEYS_DEEP: Final = 3
_SAMPLE: Final = 256
_MIN_SHARE: Final = 0.1
_LARGEST: Final = 2**1023


class JsonCollector:
    """Collects the statistics of some paths of one JSON column of a part."""

    def __init__(self, field_id: int, paths: Sequence[Path]) -> None:
        self._field_id = field_id
        self._discover = () in paths
        self._tree = None if self._discover else PathTree(paths)
        self._declared = [path for path in paths if path]
        self._found: dict[Path, _PathCollector] = {}
        self._before = JsonKind(0)  # the kinds so far of a path that first occurs now

    def add(self, values: Values) -> None:
        """Account for the documents of a batch."""
        if not len(values):
            return
        if self._tree is None:
            paths = [*self._declared, *_occurring(values)]
            self._tree = PathTree(list(dict.fromkeys(paths)))
        documents = decode_documents(values, self._tree)
        by_path = {}
        for path, cells in documents.cells.items():
            by_path[path] = cells, NO_KIND
            by_path.update(_elements(path, cells))
        for path in by_path.keys() | self._found.keys():
            collector = self._at(path)
            cells, kinds = by_path.get(path, ([], JsonKind.MISSING))
            collector.add(cells, kinds | documents.kinds)
            if collector.lacks_exponents and documents.may_have_exponents:
                collector.add([], JsonKind.EXPONENT)
        self._before |= JsonKind.MISSING | (documents.kinds & JsonKind.OTHER)

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        """The kinds of every path, and the bounds of its values of each kind."""
        for path, collector in self._found.items():
            yield from collector.finish(self._field_id, path)

    def _at(self, path: Path) -> _PathCollector:
        if path not in self._found:
            self._found[path] = _PathCollector(self._before)
        return self._found[path]


class _PathCollector:
    """Collects the kinds at one path, and the extremes of its values of each kind."""

    def __init__(self, kinds: JsonKind) -> None:
        self._kinds = kinds
        self._extremes: dict[str, tuple[Any, Any]] = {}

    @property
    def lacks_exponents(self) -> bool:
        """True if the path has numbers, and none was written with an exponent so far."""
        return JsonKind.FLOAT in self._kinds and JsonKind.EXPONENT not in self._kinds

    def add(self, cells: list[Any], kinds: JsonKind) -> None:
        self._kinds |= kinds
        by_type = dict.fromkeys(map(type, cells))
        for type_ in by_type:
            same = cells if len(by_type) == 1 else [cell for cell in cells if type(cell) is type_]
            self._add_type(type_, same)

    def _add_type(self, type_: type, cells: list[Any]) -> None:
        if type_ is msgspec.UnsetType:
            self._kinds |= JsonKind.MISSING
        elif type_ is type(None):
            self._kinds |= JsonKind.NULL
        elif type_ is bool:
            self._kinds |= (JsonKind.TRUE if True in cells else JsonKind(0)) | (
                JsonKind.FALSE if False in cells else JsonKind(0)
            )
        elif type_ is str:
            self._kinds |= JsonKind.STRING
            self._widen("string", min(cells), max(cells))
        elif type_ is int:
            self._add_whole(cells)
        elif type_ is float:
            self._add_float(min(cells), max(cells))
        elif type_ in (tuple, list):
            self._kinds |= JsonKind.LIST
        else:
            self._kinds |= JsonKind.OBJECT

    def _add_whole(self, cells: list[int]) -> None:
        """Add integers; those that do not fit into 64 bits as doubles."""
        low, high = min(cells), max(cells)
        if low in INT64 and high in INT64:
            self._kinds |= JsonKind.INT
            self._widen("int", low, high)
            return
        if short := [cell for cell in cells if cell in INT64]:
            self._add_whole(short)
        if max(-low, high) > _LARGEST:
            self._kinds |= JsonKind.OTHER
        else:
            long = [float(cell) for cell in cells if cell not in INT64]
            self._add_float(min(long), max(long))

    def _add_float(self, low: float, high: float) -> None:
        self._kinds |= JsonKind.FLOAT
        self._widen("float", low, high)

    def _widen(self, kind: str, low: Any, high: Any) -> None:
        if kind in self._extremes:
            before = self._extremes[kind]
            low, high = min(low, before[0]), max(high, before[1])
        self._extremes[kind] = low, high

    def finish(self, field_id: int, path: Path) -> Iterator[tuple[Subject, ColumnStatistics]]:
        yield path_subject(field_id, path), ColumnStatistics(kinds=int(self._kinds))
        if JsonKind.OTHER in self._kinds:
            return
        for kind, (low, high) in self._extremes.items():
            yield path_subject(field_id, path, kind), _bounds(kind, low, high)


def _bounds(kind: str, low: Any, high: Any) -> ColumnStatistics:
    if kind == "string":
        ends = pa.scalar(low), pa.scalar(high)
        lower, upper = lower_bound(ends[0]), upper_bound(ends[1])
        exact = [end is not None and end.equals(ends[i]) for i, end in enumerate((lower, upper))]
        return ColumnStatistics(
            lower=lower, upper=upper, lower_exact=exact[0], upper_exact=exact[1]
        )
    if kind == "float":
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        return ColumnStatistics(
            nan_count=0, lower=pa.scalar(low, pa.float64()), upper=pa.scalar(high, pa.float64())
        )
    return ColumnStatistics(
        lower=pa.scalar(low, pa.int64()),
        upper=pa.scalar(high, pa.int64()),
        lower_exact=True,
        upper_exact=True,
    )


def _elements(path: Path, cells: list[Any]) -> Iterator[tuple[Path, tuple[list[Any], JsonKind]]]:
    """The values and kinds of each of the first list elements, and of all elements together."""
    if tuple not in set(map(type, cells)):
        return
    lists = [cell for cell in cells if type(cell) is tuple]
    lengths = list(map(len, lists))
    shortest = 0 if len(lists) < len(cells) else min(lengths)
    for index in range(min(INDICES, max(lengths))):
        if index < shortest:
            yield (*path, index), (list(map(itemgetter(index), lists)), NO_KIND)
        else:
            there = [each[index] for each in lists if len(each) > index]
            yield (*path, index), (there, JsonKind.MISSING)
    yield (*path, ANY_INDEX), (list(chain.from_iterable(lists)), JsonKind.MISSING)


def _occurring(values: Values) -> list[Path]:
    """The paths of the first documents, most frequent first.

    Rare keys are dropped: they are often data, such as ids, and would give each part different
    columns.
    """
    counts: Counter[Path] = Counter()
    sample = values.slice(0, _SAMPLE).drop_null().to_pylist()
    for text in sample:
        try:
            document = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            continue
        counts.update(_paths_of(document, ()))
    least = len(sample) * _MIN_SHARE
    return [path for path, count in counts.most_common(MAX_PATHS) if count >= least]


def _paths_of(document: Any, path: Path) -> Iterator[Path]:
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        if not is_plain(key):
            continue
        yield (*path, key)
        if len(path) + 1 < MAX_KEYS_DEEP:
            yield from _paths_of(value, (*path, key))
