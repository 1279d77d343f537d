"""Cutting what is left to read into self-contained splits of about one size.

A clean part is cut between row groups; an overlap group is one piece. Neighbouring pieces share a
split until it is full. Since pieces never share a key, neither do splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from rowsieve.planner.plan import Piece, Split
from rowsieve.storage.part_writer import ROW_GROUP_ROWS


def cut_splits(pieces: Iterable[Piece], split_bytes: int) -> tuple[Split, ...]:
    """Splits of about `split_bytes` stored bytes, in the order of the pieces."""
    splits: list[Split] = []
    open_pieces: list[Piece] = []
    open_bytes = 0
    for piece in pieces:
        for part in _cut_piece(piece, split_bytes):
            if open_pieces and open_bytes + part.size_bytes > split_bytes:
                splits.append(Split(tuple(open_pieces)))
                open_pieces, open_bytes = [], 0
            open_pieces.append(part)
            open_bytes += part.size_bytes
    if open_pieces:
        splits.append(Split(tuple(open_pieces)))
    return tuple(splits)


def _cut_piece(piece: Piece, split_bytes: int) -> Iterator[Piece]:
    part = piece.parts[0]
    if piece.needs_merge or part.data is None or piece.size_bytes <= split_bytes:
        yield piece
        return
    groups = -(-part.data.rows // ROW_GROUP_ROWS)
    count = min(groups, -(-piece.size_bytes // split_bytes))
    for i in range(count):
        start, stop = groups * i // count, groups * (i + 1) // count
        yield Piece(
            (msgspec.structs.replace(part, row_groups=(start, stop)),),
            piece.residual,
            piece.size_bytes * (stop - start) // groups,
        )
