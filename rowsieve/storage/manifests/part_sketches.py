"""The manifest's columns of sketches: `stats.<field id>.distinct.sketch`, bytes of a `Sketch`.

A column of its own group (see `rowsieve.storage.manifests.segments`): plans, which read statistics
of the same field, do not read it. Absent, NULL and unreadable mean "unknown".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.stats.distinct import Sketch, joined, kind_of
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, Interval, Json

_FACT = ".distinct.sketch"


class PartSketches:
    """Sketches of the columns of one part, from any number of batches."""

    def __init__(self, fields: Iterable[Field]) -> None:
        kinds = ((field, _kind(field)) for field in fields)
        self._sketches = {field: Sketch(kind) for field, kind in kinds if kind is not None}

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Account for rows that have all the columns."""
        for field, sketch in self._sketches.items():
            sketch.add(rows.column(field.name))

    def finish(self) -> Mapping[str, bytes]:
        """Return the manifest's values for the part, by column name."""
        return {sketch_name(f): sketch.to_bytes() for f, sketch in self._sketches.items()}


def can_have_sketches(field: Field) -> bool:
    """Return whether equal values of the field's type have equal bytes, which sketches need."""
    return _kind(field) is not None


def sketch_name(field: Field) -> str:
    """The column of the manifest that has the field's sketches."""
    return f"stats.{field.id}{_FACT}"


def is_sketch(name: str) -> bool:
    """Return whether a column of the manifest has sketches."""
    return name.endswith(_FACT)


def lacks_sketches(parts: PartTable, fields: Iterable[Field]) -> npt.NDArray[np.bool_]:
    """(n,) whether a part with rows lacks a sketch that one of these columns can have."""
    gaps = np.zeros(len(parts), dtype=np.bool_)
    known = set(parts.schema.names)
    for field in fields:
        if _kind(field) is None:
            continue
        if (name := sketch_name(field)) not in known:
            gaps[:] = True
            break
        gaps |= np.asarray(parts.column(name).is_null().to_numpy())
    return gaps & (np.asarray(parts.numbers("data.rows")) > 0)


def sketched_fields(parts: PartTable, fields: Iterable[Field]) -> list[Field]:
    """The columns that some part has a sketch of."""
    known = set(parts.schema.names)
    names = ((field, sketch_name(field)) for field in fields if _kind(field) is not None)
    return [
        field
        for field, name in names
        if name in known and parts.column(name).null_count < len(parts)
    ]


def distinct_count(parts: PartTable, field: Field) -> int | None:
    """The estimated number of different values in the rows of the parts, hidden ones included.

    None if a part with rows has no sketch that fits the column's type of today.
    """
    kind = _kind(field)
    if kind is None or lacks_sketches(parts, [field]).any():
        return None
    name = sketch_name(field)
    if name not in parts.schema.names:
        return 0  # the parts have no rows
    cells = parts.column(name).drop_null().to_pylist()
    sketches = [Sketch.from_bytes(cell) for cell in cells]
    known = [each for each in sketches if each is not None and each.kind == kind]
    if len(known) < len(sketches):
        return None
    all_values = joined(known)
    return 0 if all_values is None else all_values.estimate()


def _kind(field: Field) -> str | None:
    """Return the kind of the field's hashes; None if equal values may differ in bytes."""
    if isinstance(field.type, (Interval, Json)):
        return None
    return kind_of(arrow_type(field.type))
