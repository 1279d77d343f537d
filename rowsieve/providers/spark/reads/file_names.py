"""Finds names in our files that Spark's Parquet reader misreads.

The columns that a scan of ours adds to those of its files have names of ours, too.

Seen in Spark 4.3.0, each without an error: a column `_tmp_metadata_row_index` is overwritten with
row numbers where it is read, and without rows where another column asks for these; `${user.name}`
inside a name is replaced, because Spark passes the names in a Hadoop setting, so the column is
NULL. Names that differ only in case are ambiguous, also in a struct.

Soundness: may find too many names, never too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

ROW_NUMBERS: Final = "_tmp_metadata_row_index"
FIRST_WORD: Final = "_rowsieve_first_word"  # of a file's bitmap
FIRST_PLACE: Final = "_rowsieve_first_place"  # of a file's rows among those of the table
_ADDED: Final = frozenset({ROW_NUMBERS, FIRST_WORD, FIRST_PLACE})
_SUBSTITUTION: Final = "${"
_DOT_ABOVE: Final = "\N{COMBINING DOT ABOVE}"


def names_clash(names: Iterable[str]) -> bool:
    """Return whether two names differ only in case, so that Spark finds them ambiguous."""
    folded = [_folded(name) for name in names]
    return len(set(folded)) < len(folded)


def is_misread(fields: Sequence[pa.Field]) -> bool:
    """Return whether Spark misreads the name of one of these columns of a file, or of a member."""
    if any(_folded(field.name) in _ADDED for field in fields):
        return True
    return any(
        names_clash(names) or any(_SUBSTITUTION in name for name in names)
        for names in _siblings(fields)
    )


def _siblings(fields: Iterable[pa.Field]) -> Iterator[list[str]]:
    """The names of these fields, then those of the members of each struct inside."""
    yield [field.name for field in fields]
    for field in fields:
        if members := _members(field.type):
            yield from _siblings(members)


def _members(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [type_.value_field]
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    if pa.types.is_struct(type_):
        return list(type_)
    return []


def _folded(name: str) -> str:
    """Fold the name's case for comparison: equal at least where Java's strings are.

    Java compares characters by upper case and then by lower case, so final sigma equals sigma, and
    an I with a dot or without one equals i.
    """
    return name.upper().casefold().replace(_DOT_ABOVE, "")
