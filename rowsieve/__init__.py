"""Upsert into Parquet at the cost of the change; query it from DataFusion and Spark.

A table is a set of versioned, sorted Parquet parts. `create_table` and `open_table` give a `Table`,
which is changed (`upsert`, `delete`, `update`, `apply_changes`, …), scanned (`scan`) and registered
in engines (`ctx.register_table("name", table)`). `register_function` adds functions to conditions,
`translate` puts a condition of one engine in the words of another.
"""

from rowsieve.bridges.translate import translate
from rowsieve.bridges.translation import Exactness, Translation
from rowsieve.config import Config, configure
from rowsieve.opening import create_table, open_table
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.functions.registered import register_function
from rowsieve.scan import Scan, read_split
from rowsieve.storage.log_entry import Commit
from rowsieve.table import Table

__all__ = [
    "Commit",
    "Config",
    "Exactness",
    "Scan",
    "ScanPlan",
    "Table",
    "Translation",
    "configure",
    "create_table",
    "open_table",
    "read_split",
    "register_function",
    "translate",
]
__version__ = "0.1.0"
