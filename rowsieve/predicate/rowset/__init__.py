"""A set of row ids of one source: `RowSet`, immutable, with its algebra and its bytes."""

from rowsieve.predicate.rowset.rowset import RowSet

__all__ = ["RowSet"]
