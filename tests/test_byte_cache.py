"""The cache behind plans, footers, bloom filters and visible rows."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from rowsieve.byte_cache import ByteCache, Origin
from tests.profiles import examples

STEPS = st.lists(
    st.tuples(st.sampled_from("gpc"), st.integers(0, 5), st.integers(0, 12)), max_size=40
)


@examples(100)
@given(limit=st.integers(0, 30), steps=STEPS)
def test_the_cache_is_a_list_by_last_use_cut_at_the_limit(
    limit: int, steps: list[tuple[str, int, int]]
) -> None:
    cache: ByteCache[int, tuple[int, int]] = ByteCache(limit)
    model: list[tuple[int, tuple[int, int]]] = []  # (key, value), least recently used first
    for number, (step, key, size) in enumerate(steps):
        found = next((value for known, value in model if known == key), None)
        if step == "c":
            cache.clear()
            model.clear()
        elif step == "g":
            assert cache.get(key) == found
            if found is not None:
                model.remove((key, found))
                model.append((key, found))
        else:
            cache.put(key, (number, size), size)
            if found is None and size <= limit:
                model.append((key, (number, size)))
            while sum(size for _, (_, size) in model) > limit:
                del model[0]
    for key, value in model:
        assert cache.get(key) == value


def test_a_second_value_for_a_key_is_not_taken() -> None:
    cache: ByteCache[str, list[int]] = ByteCache(10)
    first = [1]
    cache.put("a", first, 1)
    cache.put("a", [1], 1)
    assert cache.get("a") is first


def test_a_value_beyond_the_limit_pushes_nothing_out() -> None:
    cache: ByteCache[str, int] = ByteCache(10)
    cache.put("a", 1, 10)
    cache.put("b", 2, 11)
    assert (cache.get("a"), cache.get("b")) == (1, None)


def test_threads_never_see_the_value_of_another_key() -> None:
    cache: ByteCache[int, int] = ByteCache(50)
    wrong: list[tuple[int, int]] = []

    def use(seed: int) -> None:
        for i in range(2_000):
            key = (i * seed) % 97
            found = cache.get(key)
            if found is not None and found != key * key:
                wrong.append((key, found))
            cache.put(key, key * key, 1 + key % 7)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in (3, 5, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    kept = sum(each.size_bytes for each in cache._entries.values())
    assert cache._size_bytes == kept <= 50


def test_values_that_are_no_longer_used_are_forgotten_below_the_limit() -> None:
    cache: ByteCache[int, int] = ByteCache(10**9)
    for number in range(5_000):  # a file is replaced at every step, and five are in use
        cache.put(number, number, 1)
        for key in range(max(0, number - 4), number + 1):
            assert cache.get(key) == key
    assert len(cache) < 100


def test_values_that_are_read_in_turn_are_all_kept() -> None:
    cache: ByteCache[int, int] = ByteCache(10**9)
    for _ in range(3):
        for number in range(3_000):
            if cache.get(number) is None:
                cache.put(number, number, 1)
    assert len(cache) == 3_000


def test_values_of_the_last_versions_of_each_table_are_kept() -> None:
    cache: ByteCache[tuple[str, int, int], int] = ByteCache(10**9)
    for version in range(50):
        for table in ("a", "b"):
            for predicate in range(3):
                cache.put((table, version, predicate), version, 1, Origin(table, version))
    assert len(cache) == 2 * 3 * 8
    assert cache.get(("a", 41, 0)) is None
    assert [cache.get(("b", version, 2)) for version in range(42, 50)] == [*range(42, 50)]


VERSIONED = st.lists(
    st.tuples(st.sampled_from("gp"), st.integers(0, 2), st.integers(0, 12), st.integers(0, 3)),
    max_size=60,
)


@examples(60)
@given(limit=st.integers(5, 40), steps=VERSIONED)
def test_what_is_noted_of_versions_is_what_is_kept(
    limit: int, steps: list[tuple[str, int, int, int]]
) -> None:
    cache: ByteCache[tuple[int, int, int], int] = ByteCache(limit)
    for step, table, version, size in steps:
        key = (table, version, size)
        if step == "p":
            cache.put(key, version, size, Origin(table, version))
        else:
            assert cache.get(key) in (None, version)
        noted = [key for each in cache._versions.values() for keys in each.values() for key in keys]
        assert sorted(noted) == sorted(cache._entries)
        assert all(len(versions) <= 8 for versions in cache._versions.values())
        assert cache._size_bytes == sum(size for _, _, size in cache._entries) <= limit
