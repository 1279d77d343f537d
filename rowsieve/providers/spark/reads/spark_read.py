"""The description of a DataFrame's read of one table version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.job_errors import missing_source
from rowsieve.providers.spark.source_options import ReadOptions

if TYPE_CHECKING:
    from rowsieve.table import Table


@dataclass(frozen=True, slots=True)
class Implied:
    """A condition of a query by the rules of its session; it fails on no row."""

    predicate: ir.Predicate
    semantics: Semantics


@dataclass(frozen=True, slots=True)
class SparkRead:
    """A read of one version of a table, with its options checked.

    `where` is the condition as Spark takes it, text or a Column; None if there is none, or if it is
    not one of Spark's, as `foreign_condition` says. Rows that do not match all of `implied` may be
    missing, because the query that reads them drops them. `spark_path` is the table's folder as
    this session names it; None if that follows from its URI and properties.
    """

    table: Table
    spark: Any
    source_options: Mapping[str, str]
    options: ReadOptions
    where: Any = None
    foreign_condition: bool = False
    implied: tuple[Implied, ...] = ()
    spark_path: str | None = None

    def source_frame(self, part_ids: Collection[str] | None = None) -> Any:
        """The DataFrame of our source; with `part_ids`, of the rows of these parts."""
        options = dict(self.source_options)
        if part_ids is not None:
            options["parts"] = ",".join(sorted(part_ids))
        reader = self.spark.read.format("rowsieve").options(**options)
        try:
            return reader.load(self.table.uri)
        except Exception as error:
            if (missing := missing_source(error, f"read {self.table.uri}")) is not None:
                raise missing from error
            raise
