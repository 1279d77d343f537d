"""Determines the form in which a file of ours stores a column's values.

The form is the name of the field's extension: `rowsieve.uuid.1`, or `rowsieve.uuid.0` for opaque
bytes. Soundness: values of a form that is not known are never guessed from their storage type. A
file of a format that is newer than this code is refused, even if its manifest allows it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.parquet.file_mapping import mapping_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.types.aliases import PREFIX
from rowsieve.types.encodings import EXTENSION_KEY, arrow_field
from rowsieve.types.logical import Field
from rowsieve.types.opaque_forms import from_opaque, opaque_form

FORMAT_KEY: Final = b"rowsieve.format"
STRUCTURED_FORMAT: Final = 1
"""The format of files whose values all have their structured form."""
OPAQUE_FORMAT: Final = 2
"""The format of files with a column in its opaque form."""
ENCODED_FORMAT: Final = 3
"""The format of files whose rows only a codec has."""
FORMATS: Final = frozenset({b"1", b"2", b"3"})

_PREFIX: Final = PREFIX.encode()


def form_of(field: pa.Field) -> bytes | None:
    """Return the name of a field's extension if it is one of ours."""
    name: bytes | None = (field.metadata or {}).get(EXTENSION_KEY)
    return name if name is not None and name.startswith(_PREFIX) else None


@cached_per_footer
def forms_by_name(metadata: pq.FileMetaData) -> dict[str, bytes]:
    """The forms of the top-level columns that have one, by their names in the file."""
    if mapping_of(metadata) is not None:
        return {}
    fields = metadata.schema.to_arrow_schema()
    return {field.name: form for field in fields if (form := form_of(field)) is not None}


@cached_per_footer
def newer_format(metadata: pq.FileMetaData) -> str | None:
    """The format of a file of ours that this code does not know, or None."""
    mark: bytes | None = (metadata.metadata or {}).get(FORMAT_KEY)
    if mapping_of(metadata) is not None or mark is None or mark in FORMATS:
        return None
    return mark.decode(errors="replace")


def check_format(metadata: pq.FileMetaData, path: str) -> None:
    """Raise UnsupportedProtocol for a file of a newer format."""
    if (mark := newer_format(metadata)) is not None:
        raise UnsupportedProtocol(
            f"{path} has the format {mark}, and this version of rowsieve knows only up to "
            f"{ENCODED_FORMAT}; upgrade rowsieve to read the table"
        )


def in_form_of_type(
    values: pa.ChunkedArray, form: bytes, field: Field, path: str
) -> pa.ChunkedArray:
    """Convert a column of a file from its form there to the one of the field's type.

    UnsupportedProtocol for a form that the type does not have; CorruptData for bytes that do
    not decode.
    """
    opaque = check_form(form, field, path)
    if not opaque:
        return values
    try:
        return from_opaque(values, field)
    except ValueError as error:
        raise CorruptData(
            f"{path} has bytes in column {field.name!r} (field id {field.id}) that are not "
            f"{form.decode()}: {error}; restore the file from a copy"
        ) from error


def check_form(form: bytes, field: Field, path: str) -> bool:
    """Return whether this is the opaque form of the field's type; False for its own form.

    UnsupportedProtocol for any other form.
    """
    plain, opaque = form_of(arrow_field(field)), opaque_form(field)
    if form == plain:
        return False
    if opaque is not None and form == _PREFIX + opaque.encode():
        return True
    known = ", ".join(
        each for each in (plain and plain.decode(), opaque and f"{PREFIX}{opaque}") if each
    )
    raise UnsupportedProtocol(
        f"{path} stores column {field.name!r} (field id {field.id}) as "
        f"{form.decode(errors='replace')}, and this version of rowsieve reads "
        f"{known or 'plain values'} there; upgrade rowsieve to read the table"
    )
