"""Local times and instants of zones, and what pruning makes of them (trap T12), broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

HULLS, RANGES = "types/time_zones.py", "predicate/functions/times/zoned_times.py"
_HULLS = ("tests/types/test_time_zones.py",)
_ORACLE = ("tests/predicate/functions/test_zoned_oracle.py",)
SUITES = {HULLS: _HULLS, RANGES: _ORACLE}

MUTANTS = (
    # the hulls themselves
    Mutant(
        HULLS,
        "a clock that is set back between the bounds is forgotten",
        "low = np.where(has_next & (change <= upper), np.minimum(low, first), low)",
        "low = np.where(has_next & (change <= upper), low, low)",
    ),
    Mutant(
        HULLS,
        "a clock that is set back at the upper bound is forgotten",
        "has_next & (change <= upper)",
        "has_next & (change < upper)",
    ),
    Mutant(
        HULLS,
        "the last time before a clock is set back is forgotten",
        "high = np.where((place > 0) & (change > lower), np.maximum(high, last), high)",
        "high = np.where((place > 0) & (change > lower), high, high)",
    ),
    Mutant(
        HULLS,
        "a clock that is set back just after the lower bound is forgotten",
        "(place > 0) & (change > lower)",
        "(place > 0) & (change > lower + 1)",
    ),
    Mutant(
        HULLS,
        "the last time before a change is a unit too early",
        "+ shift) - 1\n        high",
        "+ shift) - 2\n        high",
    ),
    Mutant(
        HULLS,
        "changes between local times are forgotten",
        "for local in (upper, *self._nearest(lower, upper)):",
        "for local in (upper,):",
    ),
    Mutant(
        HULLS,
        "the time just before a change is forgotten",
        "edges += [np.clip(edge, lower, upper), np.clip(edge - 1, lower, upper)]",
        "edges += [np.clip(edge, lower, upper)]",
    ),
    Mutant(
        HULLS,
        "the time of a change is forgotten",
        "edges += [np.clip(edge, lower, upper), np.clip(edge - 1, lower, upper)]",
        "edges += [np.clip(edge - 1, lower, upper)]",
    ),
    Mutant(
        HULLS,
        "a repeated time is the earlier one alone",
        "return np.minimum(first, last), np.maximum(first, last), beyond | above",
        "return np.minimum(first, last), np.minimum(first, last), beyond | above",
    ),
    Mutant(
        HULLS,
        "an offset is steady whatever changes between",
        "same = _segment(self.starts, first) == _segment(self.starts, last)",
        "same = _segment(self.starts, first) == _segment(self.starts, first)",
    ),
    Mutant(
        HULLS,
        "no local time is odd at the bounds",
        "np.asarray(~(odd | odd_too) & (place == place_too)",
        "np.asarray((place == place_too)",
    ),
    # what functions make of them
    Mutant(
        RANGES,
        "the least local time is that of the lower bound",
        "lower = _bound(hull.lower, null_mask(value.lower)",
        "lower = _bound(own.local(low)[0], null_mask(value.lower)",
    ),
    Mutant(
        RANGES,
        "the greatest local time is that of the upper bound",
        "upper = _bound(hull.upper, null_mask(value.upper)",
        "upper = _bound(own.local(high)[0], null_mask(value.upper)",
    ),
    Mutant(
        RANGES,
        "the latest instant is that of the upper bound",
        "upper = _bound(hull.upper, null_mask(arguments[1].upper)",
        "upper = _bound(own.instant_hull(high, high).upper, null_mask(arguments[1].upper)",
    ),
    Mutant(
        RANGES,
        "a truncated lower bound is one instant",
        "least, most = hull.lower, hull.upper",
        "least, most = own.instant_hull(ends[0], ends[0]).upper, hull.upper",
    ),
    Mutant(
        RANGES,
        "a truncated upper bound is one instant",
        "least, most = hull.lower, hull.upper",
        "least, most = hull.lower, own.instant_hull(ends[1], ends[1]).lower",
    ),
    Mutant(
        RANGES,
        "a truncation is by one offset in any range",
        "local_zone.is_steady(start, stop), local_zone",
        "local_zone.is_steady(start, start), local_zone",
    ),
    Mutant(
        RANGES,
        "months that are added keep the order of days (trap T11)",
        "first, last = first // DAY_US * DAY_US, last // DAY_US * DAY_US + DAY_US - 1",
        "first, last = first + 0, last + 0",
    ),
    Mutant(
        RANGES,
        "the local times that are moved end with that of the upper bound",
        "first, last = local.lower, local.upper",
        "first, last = local.lower, own.local(high)[0]",
    ),
)
