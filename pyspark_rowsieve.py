"""What makes `spark.read.format("rowsieve")` work: Spark looks for modules with this prefix."""

from __future__ import annotations

from rowsieve.providers.spark.source import RowsieveSource as DefaultSource

__all__ = ["DefaultSource"]
