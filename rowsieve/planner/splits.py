"""Cut the pieces of a plan into self-contained splits of about equal size.

A part is cut between row groups. Neighbouring reads of an overlap group stay together, with every
part that may hide their rows. A visible row of a key exists in one part only, so no two splits
return the same key. An ordered plan keeps each overlap group in one split.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow.compute as pc

from rowsieve.planner.split import Piece, Read, Split
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS


def split_bytes_for_cores(
    parts: PartTable, *, least: int, most: int | None = None, cores: int | None = None
) -> int:
    """Return the stored bytes per split for two splits per core, so that all end about together.

    The result is between `least` and `most`. `cores` defaults to this machine's cores.
    """
    stored = int(pc.sum(parts.column("data.size_bytes")).as_py() or 0)
    return even_split_bytes(stored, least=least, most=most, cores=cores)


def even_split_bytes(
    stored: int, *, least: int, most: int | None = None, cores: int | None = None
) -> int:
    """Return `split_bytes_for_cores` for parts with `stored` bytes in total."""
    even = max(least, stored // (2 * (cores or os.cpu_count() or 1)))
    return even if most is None else min(most, even)


def cut_splits(
    pieces: Iterable[Piece], split_bytes: int, *, ordered: bool = False, in_process: bool = True
) -> tuple[Split, ...]:
    """Return splits of about `split_bytes` stored bytes, in the order of the pieces.

    Splits that are read `in_process` share the visibility of a group, so each names all parts of
    its group. A split for another process names only the parts that its reads need.
    """
    splits: list[Split] = []
    open_pieces: list[Piece] = []
    open_bytes = 0
    for piece in pieces:
        whole = piece.size_bytes <= split_bytes or (ordered and piece.needs_merge)
        for one in (piece,) if whole else _cut_piece(piece, split_bytes, in_process=in_process):
            if open_pieces and open_bytes + one.size_bytes > split_bytes:
                splits.append(Split(tuple(open_pieces)))
                open_pieces, open_bytes = [], 0
            open_pieces.append(one)
            open_bytes += one.size_bytes
    if open_pieces:
        splits.append(Split(tuple(open_pieces)))
    return tuple(splits)


def _cut_piece(piece: Piece, split_bytes: int, *, in_process: bool) -> Iterator[Piece]:
    """Yield pieces of up to `split_bytes`; a single read is cut only if its part is larger."""
    together: list[Read] = []
    together_bytes = 0
    for read, size_bytes in _cut_reads(piece, split_bytes):
        if together and together_bytes + size_bytes > split_bytes:
            yield _with_reads(piece, together, together_bytes, in_process=in_process)
            together, together_bytes = [], 0
        together.append(read)
        together_bytes += size_bytes
    if together:
        yield _with_reads(piece, together, together_bytes, in_process=in_process)


def _cut_reads(piece: Piece, split_bytes: int) -> Iterator[tuple[Read, int]]:
    for read in piece.reads:
        ref = piece.parts[read.part].data
        assert ref is not None
        groups = -(-ref.rows // ROW_GROUP_ROWS) if ref.owned else 1  # others have any row groups
        count = min(groups, -(-ref.size_bytes // split_bytes))
        if count <= 1:
            yield read, ref.size_bytes
            continue
        for i in range(count):
            start, stop = groups * i // count, groups * (i + 1) // count
            cut = msgspec.structs.replace(read, row_groups=(start, stop))
            yield cut, ref.size_bytes * (stop - start) // groups


def _with_reads(piece: Piece, reads: list[Read], size_bytes: int, *, in_process: bool) -> Piece:
    parts = piece.parts
    if not in_process:
        parts = parts[: max(read.part for read in reads) + 1]
    return Piece(parts, tuple(reads), piece.residual, size_bytes)
