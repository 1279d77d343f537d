"""Differences that shadow reads find between the two forms of a row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that the columns of a file and its codec hold differently.

    `row` is its number in the file at `path`; `key` shows the key of the row, empty without one.
    `in_columns` and `in_codec` show both values.
    """

    path: str
    row: int
    key: str
    column: str
    in_columns: str
    in_codec: str

    def __str__(self) -> str:
        key = f" (key {self.key})" if self.key else ""
        return (
            f"row {self.row} of {self.path}{key}: column {self.column!r} is {self.in_columns} in "
            f"the columns and {self.in_codec} in the codec"
        )
