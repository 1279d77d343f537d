"""Promised counts are kept whatever the factor of the deep profile is; failures are printed."""

from __future__ import annotations

import pytest
from hypothesis.vendor.pretty import pretty

from rowsieve.predicate.semantics import Semantics
from tests import profiles


@pytest.mark.parametrize(
    ("deep", "factor", "expected"),
    [(False, 25, 20), (True, 1, 2_000), (True, 5, 2_000), (True, 25, 8_000)],
)
def test_a_promised_count_is_a_floor_in_the_deep_profile(
    deep: bool, factor: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "IS_DEEP", deep)
    monkeypatch.setattr(profiles, "DEEP_FACTOR", factor)

    @profiles.examples(320, promised=2_000)
    def law() -> None:
        """Anything that settings can be attached to."""

    assert law._hypothesis_internal_use_settings.max_examples == expected


@pytest.mark.parametrize(("count", "drawn"), [(2_400, 150), (16, 3), (8, 3), (2, 2)])
def test_the_small_profile_draws_a_sixteenth_but_at_least_three(count: int, drawn: int) -> None:
    assert profiles.few(count) == drawn


def test_loops_of_the_small_profile_together_run_all_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiles, "IS_DEEP", False)
    assert sorted(case for loop in range(3) for case in profiles.some(range(10), 3, loop)) == [
        *range(10)
    ]
    monkeypatch.setattr(profiles, "IS_DEEP", True)
    assert profiles.some(range(10), 3, 1) == range(10)


def test_semantics_in_a_failing_example_are_printed() -> None:
    """Without a printer of their own this takes for ever."""
    assert pretty(Semantics.SPARK) == repr(Semantics.SPARK)
