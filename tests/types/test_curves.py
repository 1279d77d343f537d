"""Space-filling curves: neighbours on them, and ranks as coordinates."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.types.ordering.curves import Curve, positions, ranks_of_values
from tests.profiles import examples


def grid(side: int, dimensions: int) -> list[pa.Array]:
    """Every point of a cube, shuffled; each coordinate occurs equally often."""
    points = np.indices((side,) * dimensions).reshape(dimensions, -1)
    order = np.random.default_rng(side).permutation(points.shape[1])
    return [pa.array(row) for row in points[:, order]]


@pytest.mark.parametrize(("side", "dimensions"), [(8, 2), (32, 2), (8, 3), (4, 4), (2, 8)])
def test_hilbert_visits_every_point_by_steps_of_one(side: int, dimensions: int) -> None:
    forms = grid(side, dimensions)
    order = np.argsort(positions(forms, Curve.HILBERT), kind="stable")
    points = np.stack([form.to_numpy()[order] for form in forms])
    assert (np.abs(np.diff(points, axis=1)).sum(axis=0) == 1).all()


@pytest.mark.parametrize("curve", Curve)
@pytest.mark.parametrize(("side", "dimensions"), [(8, 2), (4, 3)])
def test_aligned_runs_of_a_curve_are_cubes(curve: Curve, side: int, dimensions: int) -> None:
    forms = grid(side, dimensions)
    order = np.argsort(positions(forms, curve), kind="stable")
    cube = (side // 2) ** dimensions
    for form in forms:
        corners = form.to_numpy()[order].reshape(-1, cube)
        assert (np.ptp(corners, axis=1) == side // 2 - 1).all()


@examples(100)
@given(st.lists(st.none() | st.sampled_from([-math.inf, -1.5, 0.0, 2.0, math.inf]), max_size=20))
def test_rank_counts_smaller_values_and_null_is_last(values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    expected = [
        len(known) if value is None else sum(other < value for other in known) for value in values
    ]
    assert ranks_of_values(pa.array(values, pa.float64())).tolist() == expected


@pytest.mark.parametrize("curve", Curve)
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_rows_have_positions(curve: Curve, count: int) -> None:
    form = pa.array(range(count), pa.int64())
    found = positions([form, form], curve)
    assert np.argsort(found).tolist() == list(range(count))


def test_more_columns_than_bits_lose_only_low_bits() -> None:
    forms = [pa.array(np.arange(1_000)) for _ in range(8)]
    for curve in Curve:
        assert (positions(forms, curve) >= 0).all()
    assert (np.diff(positions(forms, Curve.ZORDER)) >= 0).all()
