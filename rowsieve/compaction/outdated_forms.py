"""Finds parts whose files have other forms of their rows than the table writes now.

A rewrite gives them the forms of the properties `value_forms`, `write_encoding` and `row_codec`,
and the columns of an ignored batch version are written again from the codec.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rowsieve.encodings.file_encoding import (
    ROW_CODEC,
    FileEncoding,
    halves_to_write,
    ignored_batches,
)
from rowsieve.parquet.stored_forms import OPAQUE_FORMAT
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_layout import ENCODING
from rowsieve.types.opaque_forms import has_opaque_forms

Mask = npt.NDArray[np.bool_]


def outdated_forms(parts: PartTable, properties: Mapping[str, str]) -> Mask:
    """(n,) whether each part has a file of rows that the table would write in other forms now."""
    opaque = parts.numbers("format_version") == OPAQUE_FORMAT
    outdated = opaque & (not has_opaque_forms(properties))
    if ENCODING in parts.schema.names:
        texts = parts.column(ENCODING).to_pylist()
        known = {text: _is_outdated(text, properties) for text in set(texts)}
        outdated |= np.array([known[text] for text in texts], dtype=np.bool_)
    elif halves_to_write(properties) != "columns":
        outdated |= True
    has_rows = np.asarray(parts.column("data.path").is_valid())
    return np.asarray(outdated & has_rows & ~parts.held_in_memory())


def _is_outdated(text: str | None, properties: Mapping[str, str]) -> bool:
    wanted = halves_to_write(properties)
    if text is None:
        return wanted != "columns"
    encoding = FileEncoding.parse(text)
    if encoding.halves != wanted or encoding.batch in ignored_batches(properties):
        return True
    return wanted != "columns" and encoding.codec != properties.get(ROW_CODEC)
