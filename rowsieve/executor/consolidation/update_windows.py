"""Cut updates into windows: all updates of a row are in one window, so each is summed alone.

Windows are ranges of one column in whose order every batch is, as files that are clustered by it
are: then a window is a slice of each batch, without a copy. Small windows stay in the caches of the
processor. Without such a column, all updates are one window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.executor.consolidation.equality_codes import Codes, plain_codes
from rowsieve.storage.differential import DIFF

WINDOW_ROWS: Final = 131_072
_SAMPLED: Final = 1_024  # one of so many rows decides where windows end


def update_windows(batches: Sequence[pa.RecordBatch]) -> Iterator[Sequence[pa.RecordBatch]]:
    """Yield windows of about `WINDOW_ROWS` rows, or one window; no window is empty."""
    count = sum(batch.num_rows for batch in batches)
    leads = _leads(batches) if count > 2 * WINDOW_ROWS else None
    if leads is None:
        if count:
            yield batches
        return
    sample = np.sort(np.concatenate([lead[::_SAMPLED] for lead in leads]))
    step = max(len(sample) * WINDOW_ROWS // count, 1)
    cuts = np.unique(sample[step::step])
    places = np.stack([np.searchsorted(lead, cuts) for lead in leads])
    ends = np.array([[len(lead)] for lead in leads], dtype=np.int64)
    stops = np.concatenate([places, ends], axis=1)
    starts = np.concatenate([np.zeros_like(ends), places], axis=1)
    for number in range(stops.shape[1]):
        wanted = np.flatnonzero(stops[:, number] > starts[:, number])
        if len(wanted):
            yield [
                batches[i].slice(starts[i, number], stops[i, number] - starts[i, number])
                for i in wanted.tolist()
            ]


def _leads(batches: Sequence[pa.RecordBatch]) -> list[Codes] | None:
    """The numbers of the first column that ascends in every batch; None without one."""
    for place, name in enumerate(batches[0].schema.names):
        if name == DIFF:
            continue
        leads: list[Codes] = []
        for batch in batches:
            codes = plain_codes(batch.column(place))
            if codes is None or (codes[1:] < codes[:-1]).any():
                break
            leads.append(codes)
        else:
            return leads
    return None
