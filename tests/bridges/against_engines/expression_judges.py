"""polars and pyarrow as judges of the values of their expressions, given as Python text."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

from tests.bridges.against_engines.judges import LackingError, ValueFailure, numbered, plain
from tests.bridges.against_engines.python_expressions import expression
from tests.bridges.sql.postgres import ROW


@dataclass
class _Expressions:
    """An engine that lacks what fails over no row; other failures are of values."""

    engine: str

    def values(self, text: str, rows: pa.Table, *, optimised: bool = True) -> list[Any]:
        """Return one value for each row."""
        del optimised
        return plain(self._asked(self._selected, text, rows)["x"])

    def kept(self, text: str, rows: pa.Table) -> list[int]:
        """Return the numbers of the rows that a filter keeps."""
        return sorted(self._asked(self._filtered, text, numbered(rows))[ROW].to_pylist())

    def _asked(
        self, ask: Callable[[Any, pa.Table], pa.Table], text: str, rows: pa.Table
    ) -> pa.Table:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of deprecated methods
            try:
                made = expression(text, self.engine)
                ask(made, rows.slice(0, 0))
            except BaseException as error:
                raise _raised(error, LackingError) from error
            try:
                return ask(made, rows)
            except BaseException as error:
                raise _raised(error, ValueFailure) from error

    def _selected(self, made: Any, rows: pa.Table) -> pa.Table:
        raise NotImplementedError

    def _filtered(self, made: Any, rows: pa.Table) -> pa.Table:
        raise NotImplementedError


def _raised(error: BaseException, meaning: type[Exception]) -> BaseException:
    """Return the judge's error for one of the engine; a panic of Rust is no `Exception`."""
    if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
        return error
    return meaning(f"{type(error).__name__}: {error}")


@dataclass
class Polars(_Expressions):
    """polars over a frame in memory."""

    engine: str = "polars"

    def _selected(self, made: Any, rows: pa.Table) -> pa.Table:
        frame = pl.DataFrame(rows).with_columns(made.alias("x"))
        return pa.table({"x": frame["x"].to_arrow()})

    def _filtered(self, made: Any, rows: pa.Table) -> pa.Table:
        return pl.DataFrame(rows).filter(made).select(ROW).to_arrow()


@dataclass
class PyArrow(_Expressions):
    """pyarrow's dataset over a table in memory."""

    engine: str = "pyarrow"

    def _selected(self, made: Any, rows: pa.Table) -> pa.Table:
        return ds.dataset(rows).to_table(columns={"x": made}, use_threads=False)

    def _filtered(self, made: Any, rows: pa.Table) -> pa.Table:
        return ds.dataset(rows).to_table(columns=[ROW], filter=made, use_threads=False)
