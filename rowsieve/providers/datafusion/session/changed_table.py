"""The table that a statement changes, under its name in the session."""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.providers.datafusion.catalog_tables import CatalogTables
from rowsieve.table import Table


@dataclass(frozen=True, slots=True)
class Changed:
    """The table that a statement changes; `name_there` is its name in `catalog`, if it has one."""

    table: Table
    name: str
    catalog: CatalogTables | None = None
    name_there: str = ""
