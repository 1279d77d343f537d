"""Local times and instants against `zoneinfo`, one time after another, at every change."""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from rowsieve.errors import InvalidPredicate
from rowsieve.types.time_zones import Hull, RepeatedTime, SkippedTime, Zone, fixed_offset, zone
from tests.profiles import DEEP_FACTOR, IS_DEEP

NAMES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",  # half an hour
    "Pacific/Apia",  # skipped a day
    "Asia/Kathmandu",
    "America/Sao_Paulo",  # at midnight
    "Africa/Casablanca",  # set back in Ramadan, with changes until 2087
    "Europe/Dublin",  # winter time is the exception
    "America/Toronto",  # 23:30 is 00:30
    "Africa/Freetown",  # two changes within four days
)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SECOND = 1_000_000
ROUNDS = 40 * (DEEP_FACTOR if IS_DEEP else 1)
RESOLVED = tuple(
    itertools.product(
        (RepeatedTime.EARLIER, RepeatedTime.LATER),
        (
            SkippedTime.SHIFTED,
            SkippedTime.BACK,
            SkippedTime.FIRST_AFTER,
            SkippedTime.LAST_BEFORE,
        ),
    )
)


def awkward(own: Zone, seed: int = 0) -> list[int]:
    """Seconds near every change of the zone, as instants and as local times, and others."""
    rng = random.Random(seed)
    near = (-90_000, -3_600, -1, 0, 1, 1_799, 1_800, 3_599, 3_600, 90_000)
    found = [int(start) + step for start in own.starts[1:] for step in near]
    found += [int(start) + step for start in own.local_starts[1:] for step in (-1, 0, 1)]
    found += [rng.randrange(-60_000_000_000, 253_000_000_000) for _ in range(500)]
    return found


def micros(seconds: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(seconds, dtype=np.int64) * SECOND


@pytest.mark.parametrize("name", NAMES)
def test_a_local_time_is_the_one_of_zoneinfo(name: str) -> None:
    own, rules = zone(name), ZoneInfo(name)
    seconds = awkward(own)
    local, lost = own.local(micros(seconds))
    assert not lost.any()
    wanted = [
        (EPOCH + datetime.timedelta(seconds=second)).astimezone(rules).replace(tzinfo=datetime.UTC)
        for second in seconds
    ]
    found = [EPOCH + datetime.timedelta(microseconds=int(each)) for each in local]
    assert found == wanted


@pytest.mark.parametrize("name", NAMES)
def test_an_instant_is_the_one_of_zoneinfo_on_either_side_of_a_fold(name: str) -> None:
    own, rules = zone(name), ZoneInfo(name)
    seconds = awkward(own)
    ways = ((RepeatedTime.EARLIER, SkippedTime.SHIFTED), (RepeatedTime.LATER, SkippedTime.BACK))
    for fold, (repeated, skipped) in enumerate(ways):
        found, failed, null = own.instants(micros(seconds), repeated, skipped)
        wanted = [
            (EPOCH + datetime.timedelta(seconds=second))
            .replace(tzinfo=rules, fold=fold)
            .astimezone(datetime.UTC)
            for second in seconds
        ]
        assert [EPOCH + datetime.timedelta(microseconds=int(each)) for each in found] == wanted
        assert not failed.any()
        assert not null.any()


def test_skipped_and_repeated_times_follow_the_rule() -> None:
    own = zone("America/New_York")
    skipped, repeated, plain = (
        np.array([(moment - EPOCH.replace(tzinfo=None)) // datetime.timedelta(microseconds=1)])
        for moment in (
            datetime.datetime(2024, 3, 10, 2, 30),
            datetime.datetime(2024, 11, 3, 1, 30),
            datetime.datetime(2024, 7, 1),
        )
    )
    half = 1_800 * SECOND
    change = 1_710_054_000 * SECOND
    of_skipped = {
        SkippedTime.SHIFTED: change + half,
        SkippedTime.BACK: change - half,
        SkippedTime.FIRST_AFTER: change,
        SkippedTime.LAST_BEFORE: change - 1,
    }
    for rule, wanted in of_skipped.items():
        assert own.instants(skipped, RepeatedTime.FAIL, rule)[0].tolist() == [wanted]
    earlier = 1_730_611_800 * SECOND
    fall = SkippedTime.FAIL
    assert own.instants(repeated, RepeatedTime.EARLIER, fall)[0].tolist() == [earlier]
    assert own.instants(repeated, RepeatedTime.LATER, fall)[0].tolist() == [earlier + 2 * half]
    winter = np.array([-5 * 3_600 * SECOND])
    assert own.instants(repeated, RepeatedTime.SAME, fall, winter)[0] == earlier + 2 * half
    assert own.instants(repeated, RepeatedTime.SAME, fall, winter + 2 * half)[0] == earlier
    assert own.instants(repeated, RepeatedTime.FAIL, fall)[1].tolist() == [True]
    assert own.instants(skipped, RepeatedTime.FAIL, fall)[1].tolist() == [True]
    null = (RepeatedTime.NULL, SkippedTime.NULL)
    assert [own.instants(each, *null)[2].tolist() for each in (skipped, repeated, plain)] == [
        [True],
        [True],
        [False],
    ]


def ranges(own: Zone, name: str) -> Iterator[tuple[int, int]]:
    rng = random.Random(name)
    seconds = awkward(own, seed=1)
    day = 86_400 * SECOND
    lengths = (0, 1, SECOND, 1_800 * SECOND, 3_600 * SECOND, day, 20 * day, 400 * day)
    for _ in range(ROUNDS):
        low = rng.choice(seconds) * SECOND + rng.choice((-1, 0, 1))
        yield low, low + rng.choice(lengths)


def held(hull: Hull, values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    return bool(hull.lower[0] <= values.min() and values.max() <= hull.upper[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_hull_holds_every_time_between(name: str) -> None:
    own = zone(name)
    rng = random.Random(name)
    changes = np.unique([*own.starts[1:], *own.local_starts[1:], *own.local_ends[:-1]]) * SECOND
    for low, high in ranges(own, name):
        inside = changes[(changes >= low) & (changes <= high)]
        times = np.array(
            [low, high, *inside, *(inside - 1), *(rng.randint(low, high) for _ in range(10))]
        )
        times = times[times >= low]
        ends = np.array([low]), np.array([high])
        local = own.local_hull(*ends)
        assert held(local, own.local(times)[0])
        for rules in RESOLVED:
            assert held(own.instant_hull(*ends), own.instants(times, *rules)[0])
        if own.is_plain(*ends)[0]:
            assert not own.instants(times, RepeatedTime.FAIL, SkippedTime.FAIL)[1].any()
        if own.is_steady(*ends)[0]:
            assert len(np.unique(own.offsets_at(times))) == 1
            assert [local.lower[0], local.upper[0]] == [own.local(end)[0][0] for end in ends]


@pytest.mark.parametrize("name", ["America/New_York", "Asia/Kathmandu", "+18:00", "-18:00"])
def test_times_near_the_ends_of_64_bits_are_lost_not_wrapped(name: str) -> None:
    own = zone(name)
    ends = np.array([-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1])
    east = own.offsets_at(ends) > 0
    assert own.local(ends)[1].tolist() == [not east[0], not east[1], *east[2:].tolist()]
    for rules in RESOLVED:
        failed = own.instants(ends, *rules)[1].tolist()
        assert failed == [*east[:2].tolist(), not east[2], not east[3]]
    for way in (own.local_hull, own.instant_hull):
        hull = way(ends[:1], ends[-1:])
        assert hull.no_lower.tolist() != hull.no_upper.tolist()
    later = own.local(np.array([10_000_000_000 * SECOND, 9_000_000_000_000 * SECOND]))
    assert not later[1].any()


@pytest.mark.parametrize("name", [*NAMES, "UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_zones_with_each_midnight_once_are_known(name: str) -> None:
    own = zone(name)
    midnights = np.arange(-40_000, 60_000) * 86_400_000_000  # from 1860 to 2134
    local = own.is_plain(midnights, midnights)
    assert own.has_each_midnight_once == local.all()


def test_rules_repeat_after_400_years() -> None:
    own, cycle = zone("Europe/Berlin"), 146_097 * 86_400 * SECOND
    instants = micros([4_102_444_800 + day * 86_400 for day in range(0, 1_000, 7)])
    for times in (1, 50, 500):
        later = instants + times * cycle
        assert (own.offsets_at(later) == own.offsets_at(instants)).all()
        assert (own.local(later)[0] - own.local(instants)[0] == times * cycle).all()
    assert len(np.unique(own.offsets_at(instants))) == 2  # summer time goes on


def test_a_zone_until_2100_keeps_its_last_offset() -> None:
    whole, ended = zone("America/New_York"), zone("America/New_York until 2100")
    assert ended.name == "America/New_York until 2100"
    before, after = micros([2_500_000_000, 4_102_444_799]), micros([4_117_000_000, 10**11])
    assert (whole.local(before)[0] == ended.local(before)[0]).all()
    assert np.unique(ended.offsets_at(after)).tolist() == [-5 * 3_600 * SECOND]
    assert whole.offsets_at(after)[0] == -4 * 3_600 * SECOND
    hull = ended.local_hull(before[:1], after[-1:])
    assert hull.upper.tolist() == ended.local(after[-1:])[0].tolist()
    assert zone("Asia/Kathmandu until 2100").name == "Asia/Kathmandu"


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("UTC", "UTC"),
        ("z", "UTC"),
        ("Etc/UTC", "UTC"),
        ("GMT", "UTC"),
        ("+00:00", "UTC"),
        ("-0", "UTC"),
        ("+05:30", "+05:30"),
        ("+0530", "+05:30"),
        ("-8", "-08:00"),
        ("UTC+3", "+03:00"),
        ("GMT-09:30", "-09:30"),
        ("+01:02:03", "+01:02:03"),
        ("Europe/Berlin", "Europe/Berlin"),
        (" europe/berlin ", "Europe/Berlin"),
        ("America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    ],
)
def test_a_zone_has_one_name(name: str, canonical: str) -> None:
    assert zone(name).name == canonical


@pytest.mark.parametrize(
    "name",
    [
        "",
        "EST",
        "CET",
        "IST",
        "Europe/Atlantis",
        "../../etc/passwd",
        "/usr/share/zoneinfo/Europe/Berlin",
        "right/Europe/Berlin",
        "posix/Europe/Berlin",
        "Europe",
        "Europe/",
        "+25:00",
        "+18:01",
        "+05:60",
        "localtime",
        "Europe/Ber\0lin",
        "Europe/Bérlin",
        "٣",
        "a/" * 5_000,
    ],
)
def test_an_unknown_zone_name_is_rejected(name: str) -> None:
    with pytest.raises(InvalidPredicate, match="time zone"):
        zone(name)


def test_offsets_are_read_east_of_utc() -> None:
    assert fixed_offset("+05:30") == 19_800
    assert fixed_offset("UTC-3") == -10_800
    assert fixed_offset("Europe/Berlin") is None
