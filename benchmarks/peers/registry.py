"""The list of systems, with the module and the environment of each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class System:
    """How a system is found: `module:class` in this package, the distribution that it measures.

    `environment` names a file in `requirements/`, None is our own environment. `data` is the system
    whose table it reads, when it has none itself. `compacts` and `logged` say that it is a
    `Compacter` and `Logged`. Beyond `most_changed` rows upserted in all it is left out, for `why`.
    """

    name: str
    code: str
    package: str
    environment: str | None = None
    data: str | None = None
    compacts: bool = False
    logged: bool = False
    most_changed: int | None = None
    why: str = ""

    def new(self, folder: Path) -> Any:
        """Its table in `folder`; imports the system."""
        module, _, name = self.code.partition(":")
        return getattr(importlib.import_module(f"{__package__}.{module}"), name)(folder)

    @property
    def requirements(self) -> Path | None:
        """The pinned packages of its environment."""
        if self.environment is None:
            return None
        return FOLDER / "requirements" / f"{self.environment}.txt"


OURS = "rowsieve"
SYSTEMS = (
    System(OURS, "rowsieve_table:Rowsieve", "rowsieve", compacts=True, logged=True),
    System("rowsieve in DataFusion", "rowsieve_table:InDataFusion", "rowsieve", data=OURS),
    System("deltalake", "delta:Delta", "deltalake", compacts=True, logged=True),
    System("DuckDB table", "duckdb_table:DuckDb", "duckdb"),
    System("Parquet in DataFusion", "datafusion_files:Files", "datafusion"),
    System("Parquet in polars", "polars_files:Files", "polars"),
    System("Lance", "lance_dataset:Lance", "pylance", "lance", compacts=True),
    System("pypaimon-rust", "paimon:Paimon", "pypaimon-rust", "paimon"),
    System("DuckLake", "ducklake:DuckLake", "duckdb-extension-ducklake", "ducklake", compacts=True),
    System(
        "pyiceberg",
        "iceberg:Iceberg",
        "pyiceberg",
        "iceberg",
        most_changed=100_000,
        why="an upsert is a predicate with a term per key: it takes minutes",
    ),
)
PLANNERS = (
    System(OURS, "rowsieve_table:Parts", "rowsieve"),
    System("deltalake", "delta:Parts", "deltalake"),
    System("pyiceberg", "iceberg:Parts", "pyiceberg", "iceberg"),
)
STREAMS = (
    System(OURS, "streams:Rowsieve", "rowsieve"),
    System("rowsieve, all cores", "streams:AllCores", "rowsieve"),
    System("pyarrow decode", "streams:Decode", "pyarrow"),
    System("pyarrow decode, checked", "streams:VerifiedDecode", "pyarrow"),
    System("DuckDB QUALIFY", "duckdb_qualify:Qualify", "duckdb"),
    System("DataFusion row_number", "datafusion_window:Window", "datafusion"),
)
UNKEYED = "rowsieve without a key"
RECODING = "pyarrow decode and encode"
REWRITERS = (
    System(OURS, "rewriting:Rewriting", "rowsieve", compacts=True),
    System(UNKEYED, "rewriting:RewritingWithoutKey", "rowsieve", compacts=True),
    System(RECODING, "rewriting:Recoding", "pyarrow", data=OURS),
    next(system for system in SYSTEMS if system.name == "Lance"),
)
KINDS = {"systems": SYSTEMS, "planners": PLANNERS, "streams": STREAMS, "rewriters": REWRITERS}


def system(kind: str, name: str) -> System:
    """Look one up."""
    return next(one for one in KINDS[kind] if one.name == name)
