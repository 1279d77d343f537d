"""A table as a Polars LazyFrame, whose reads prune by its filters.

Polars passes its own expression, so its semantics are known, unlike those of a pyarrow filter.
Soundness: the conditions that we can translate prune, under Polars' semantics, and Polars applies
the whole expression to the rows that are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowsieve.bridges.polars_exprs import from_polars
from rowsieve.errors import MissingExtra, RowsieveError
from rowsieve.metrics import Reporter
from rowsieve.objects import ObjectStore
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.arrow.unreadable import plain_schema, projected
from rowsieve.providers.datafusion.open_reads import OPEN_READS, Batches
from rowsieve.scan import Scan
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import relabelled
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    import polars


def frame_of(data: pa.Table | pa.RecordBatch) -> polars.DataFrame:
    """Convert Arrow rows to a Polars DataFrame, with the same column names.

    `polars.from_arrow` alone renames a column that is called "" and forgets the number of rows of a
    batch without columns.
    """
    if not data.num_columns:
        return _without_columns(data.num_rows)
    places = [str(place) for place in range(data.num_columns)]
    frame: polars.DataFrame = _polars().from_arrow(data.rename_columns(places))
    frame.columns = list(data.schema.names)
    return frame


def lazy_frame(
    store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None
) -> polars.LazyFrame:
    """A LazyFrame of one version; each read is reported to `reporter`."""
    _polars()
    OPEN_READS.wait_at_exit()
    from polars.io.plugins import register_io_source  # noqa: PLC0415 - an extra

    def read(
        columns: list[str] | None,
        predicate: polars.Expr | None,
        row_count: int | None,
        batch_size: int | None,  # noqa: ARG001 - a hint
    ) -> Iterator[polars.DataFrame]:
        frames = _frames(store, snapshot, reporter, columns, predicate, row_count)
        return Batches(frames)  # the streaming engine's threads read on after a limit or failure

    return register_io_source(
        read,
        schema=frame_of(plain_schema(snapshot).empty_table()).schema,
        is_pure=True,
        explain_name="rowsieve",
        explain_detail=f"{store.uri} at version {snapshot.version}",
    )


def _frames(
    store: ObjectStore,
    snapshot: Snapshot,
    reporter: Reporter | None,
    columns: list[str] | None,
    predicate: polars.Expr | None,
    row_count: int | None,
) -> Iterator[polars.DataFrame]:
    """The first `row_count` rows that a scan gives, without those that fail the predicate.

    Columns are chosen by `frame[names]`, as `select` would read names such as `*` as patterns.
    """
    schema = plain_schema(snapshot)
    wanted = list(schema.names) if columns is None else columns
    needed = wanted if predicate is None else [*wanted, *predicate.meta.root_names()]
    names = list(dict.fromkeys(needed))
    scan = Scan(
        store,
        snapshot,
        # Polars applies its row limit before its filter.
        where=_readable(predicate, snapshot.schema) if row_count is None else TRUE,
        columns=names,
        limit=row_count,
        semantics=Semantics.POLARS,
        reporter=reporter,
    )
    output = projected(schema, names)
    for batch in scan.to_batches():
        frame = frame_of(relabelled(batch, output) if names else batch)
        if predicate is not None:
            frame = frame.filter(predicate)
        yield frame[wanted] if wanted else _without_columns(frame.height)


def _without_columns(row_count: int) -> polars.DataFrame:
    frame: polars.DataFrame = _polars().DataFrame(height=row_count)
    return frame


def _readable(expression: polars.Expr | None, schema: Schema) -> Predicate:
    """The translatable conditions of a filter; TRUE wherever the filter is."""
    if expression is None:
        return TRUE
    try:
        return from_polars(expression, schema).expression or TRUE
    except RowsieveError:
        return TRUE


def _polars() -> Any:
    try:
        import polars  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise MissingExtra(
            "reading into Polars needs polars: pip install 'rowsieve[polars]'"
        ) from error
    return polars
