"""The cache behind plans, footers, bloom filters and visible rows."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from rowsieve.byte_cache import ByteCache
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
    assert cache._size_bytes == sum(size for _, size in cache._entries.values()) <= 50
