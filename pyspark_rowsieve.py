"""What makes `spark.read.format("rowsieve")` work: Spark looks for modules with this prefix."""

from __future__ import annotations

from rowsieve.bridges.extras import imported
from rowsieve.errors import UnsupportedOperation

try:
    imported("pyspark", "spark")
except UnsupportedOperation:  # Spark asks for all sources at once: an error here would hide others
    from rowsieve.providers.spark.refused_source import RefusedSource as DefaultSource
else:
    from rowsieve.providers.spark.source import (  # type: ignore[assignment] # one of both
        RowsieveSource as DefaultSource,
    )

__all__ = ["DefaultSource"]
