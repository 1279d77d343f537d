"""Fixed defaults of reads, where neither a table property nor an argument decides.

Nothing is read from the environment.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of reads.

    `split_bytes`: stored bytes that one split of a plan aims at. `memory_bytes`: how much a read
    may hold at once, beside the snapshot; batches that were handed out are not counted.
    """

    split_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 256 * 1024 * 1024


DEFAULT = Config()
