"""`RowSet`: an immutable set of row ids of one source, with set operations and serialisation."""

from rowsieve.predicate.rowset.rowset import RowSet

__all__ = ["RowSet"]
