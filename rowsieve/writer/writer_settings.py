"""The settings of a writer."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rowsieve.errors import InvalidInput
from rowsieve.objects.location import Location
from rowsieve.writer.wal import Recovery

Durability = Literal["wal", "commit"]
Sync = Literal["always", "interval", "off"]


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def local_directory(wal_dir: str | os.PathLike[str], table_uri: str) -> Path:
    """Return the directory of a log; InvalidInput for no name, a URI and the table's folder."""
    text = os.fspath(wal_dir)
    if not text.strip() or _SCHEME.match(text):
        raise InvalidInput(
            f"writer: wal_dir must be the path of a local directory, not {text!r}; a log in an "
            'object store is not available: use durability="commit" to write none'
        )
    if f"{Location.local(text).uri}/".startswith(f"{table_uri.rstrip('/')}/"):
        raise InvalidInput(
            f"writer: wal_dir {text!r} is in the folder of the table, which goes when the table is "
            "dropped; give a directory beside it"
        )
    return Path(text)


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """When changes are acknowledged, and when they are committed."""

    durability: Durability = "wal"
    wal_dir: Path | None = None
    sync: Sync = "always"
    sync_interval_s: float = 0.1
    recovery: Recovery = "trim"
    flush_rows: int = 100_000
    flush_bytes: int = 64 << 20
    flush_interval_s: float = 1.0
    max_buffered: int = 400_000
    compacts: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInput for settings that contradict each other."""
        if self.durability == "wal" and self.wal_dir is None:
            raise InvalidInput(
                'writer: durability="wal" needs wal_dir=, a local directory for the log; use '
                'durability="commit" to write none'
            )
        if self.durability == "commit" and self.wal_dir is not None:
            raise InvalidInput(
                'writer: wal_dir= is for durability="wal"; with durability="commit" each change is '
                "acknowledged after its commit, and there is no log"
            )
        positive = {
            "flush_rows": self.flush_rows,
            "flush_bytes": self.flush_bytes,
            "max_buffered": self.max_buffered,
            "flush_interval_s": self.flush_interval_s,
            "sync_interval_s": self.sync_interval_s,
        }
        for name, value in positive.items():
            if not value > 0:
                raise InvalidInput(f"writer: {name} must be above 0, not {value}")
