"""The formats by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from rowsieve.envelopes.debezium import DEBEZIUM, UNWRAPPED
from rowsieve.envelopes.dms import DMS, DMS_FILES
from rowsieve.envelopes.formats import Format
from rowsieve.envelopes.mysql_formats import CANAL, MAXWELL
from rowsieve.envelopes.wal2json import WAL2JSON

EventFormat: TypeAlias = Literal[
    "debezium", "debezium-unwrapped", "maxwell", "canal", "dms", "dms-files", "wal2json"
]

FORMATS: Final[Mapping[str, Format]] = {
    each.name: each for each in (DEBEZIUM, UNWRAPPED, MAXWELL, CANAL, DMS, DMS_FILES, WAL2JSON)
}
