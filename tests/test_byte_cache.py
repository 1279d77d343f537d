"""The cache behind plans, footers, bloom filters and visible rows."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve
from rowsieve import byte_cache
from rowsieve.byte_cache import PROCESS_BYTES, Budget, ByteCache, Origin, cached_in
from rowsieve.metrics import caches
from tests import house
from tests.profiles import examples

ROOT = Path(rowsieve.__file__).parent
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


def test_values_used_once_take_a_small_share() -> None:
    cache: ByteCache[int, int] = ByteCache(1_000, once_bytes=100)
    for number in range(50):
        cache.put(-1 - number, number, 10)
        assert cache.get(-1 - number) == number  # used again
    for number in range(5_000):
        cache.put(number, number, 10)
        if number % 20 == 0:
            assert cache.get(-50) is not None
    assert cache.get(4_999) == 4_999
    assert cache.get(4_980) is None
    assert cache.usage().size_bytes <= 1_000


def test_caches_of_one_budget_hold_at_most_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(100)
    monkeypatch.setattr(byte_cache, "PROCESS", budget)
    old: ByteCache[int, int] = ByteCache(80, "old")
    new: ByteCache[int, int] = ByteCache(80, "new")
    for number in range(8):
        old.put(number, number, 10)
    assert old.get(0) == 0  # used after the others
    for number in range(6):
        new.put(number, number, 10)
    assert [each.name for each in budget.usage()] == ["new", "old"]
    assert budget.size_bytes == sum(each.size_bytes for each in budget.usage()) == 100
    assert [old.get(number) for number in range(6)] == [0, None, None, None, None, 5]
    assert len(new) == 6
    new.clear()
    assert budget.size_bytes == 40


@examples(60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("gpc"), st.booleans(), st.integers(0, 6), st.integers(0, 12)),
        max_size=60,
    )
)
def test_the_sum_of_a_budget_is_the_sum_of_its_values(
    steps: list[tuple[str, bool, int, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        budget = Budget(40)
        patch.setattr(byte_cache, "PROCESS", budget)
        caches: list[ByteCache[int, int]] = [
            ByteCache(30, "one", once_bytes=20),
            ByteCache(30, "two"),
        ]
        for step, which, key, size in steps:
            cache = caches[which]
            if step == "p":
                cache.put(key, size, size)
            elif step == "g":
                cache.get(key)
            else:
                cache.clear()
            for each in caches:
                sizes = {key: entry.size_bytes for key, entry in each._entries.items()}
                assert each._size_bytes == sum(sizes.values()) <= 30
                assert each._once_bytes == sum(sizes[key] for key in each._once)
            assert budget.size_bytes == sum(each._size_bytes for each in caches) <= 40


def test_a_decorated_function_is_called_once_for_its_arguments() -> None:
    cache: ByteCache[Any, Any] = ByteCache(30)
    calls = []

    @cached_in(cache, lambda result, text, times=1: len(text) * times)
    def repeated(text: str, times: int = 1) -> str | None:
        calls.append(text)
        return text * times or None

    @cached_in(cache, lambda _, text: len(text))
    def other(text: str) -> str:
        return text.upper()

    assert [repeated("ab"), repeated("ab"), repeated("ab", times=2), other("ab")] == [
        *("ab", "ab", "abab", "AB")
    ]
    assert calls == ["ab", "ab"]
    assert repeated("") is repeated("") is None  # None is a result, too
    assert calls == ["ab", "ab", ""]
    repeated("x" * 31)
    repeated("x" * 31)  # larger than the cache
    assert len(calls) == 5


def test_every_cache_of_the_package_has_a_bound_in_bytes() -> None:
    """A cache of a number of values has no bound, unless the package alone writes its keys."""
    constant = {
        "arguments/checking.py": "signatures",
        "arguments/kinds.py": "annotations",
        "bridges/datafusion_exprs/build.py": "one session",
        "bridges/differences/__init__.py": "engines",
        "bridges/extras.py": "modules",
        "bridges/sql/constructs/templates.py": "templates of tables",
        "bridges/sql/reading/lifted_lists.py": "two kinds of strings",
        "bridges/sql/reading/read_calls.py": "dialects",
        "bridges/substrait_exprs/types.py": "types",
        "bridges/substrait_exprs/write.py": "extensions",
        "cli/command_list.py": "commands",
        "encodings/json_lines.py": "64 classes of rows",
        "envelopes/debezium.py": "log numbers of connectors",
        "objects/store_opening.py": "two clients of a store, in the store",
        "parquet/leaf_columns.py": "columns of files",
        "parquet/mini_file.py": "names and types of leaves",
        "predicate/functions/nested/json_members.py": "paths",
        "predicate/functions/texts/young_letters.py": "releases of Unicode",
        "procedures/procedure_registry.py": "groups of entry points",
        "providers/datafusion/catalog_tables.py": "two interfaces",
        "providers/datafusion/plan_checks.py": "one session",
        "providers/datafusion/part_choice/scan_conditions.py": "one session",
        "providers/datafusion/pushdown_barriers.py": "one plan",
        "providers/datafusion/session_settings.py": "settings",
        "providers/spark/jvm/java.py": "one folder",
        "providers/spark/jvm/old_times_rule.py": "16 errors of Spark, each logged once",
        "providers/spark/procedure_engine.py": "modules",
        "providers/spark/reads/audited.py": "names of reporters",
        "providers/spark/reads/counting_rule.py": "16 errors of Spark, each logged once",
        "stats/json_shredding.py": "one call",
        "stats/named_collectors.py": "one group of entry points",
        "stats/subjects.py": "types",
        "types/stored_defaults.py": "defaults of columns",
        "types/time_zones.py": "zones",
    }
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "cache" in (text := path.read_text()) and "functools" in text
        for node in ast.walk(house.tree_of(path))
        if isinstance(node, ast.alias) and node.name in ("cache", "lru_cache")
    }
    assert found == set(constant)


def test_the_caches_of_the_process_are_told() -> None:
    import rowsieve.table  # noqa: F401 - imports all caches

    names = {each.name for each in caches()}
    assert names >= {
        *("bloom filters", "footers", "plans", "plans, resolved", "row group statistics"),
        *("schemas", "texts", "visibility", "paths of foreign files"),
    }
    assert sum(each.size_bytes for each in caches()) <= PROCESS_BYTES
    settings = (house.REPOSITORY / "docs/reference/settings.md").read_text()
    (row,) = [line for line in settings.splitlines() if line.startswith("| caches of a process")]
    assert f"{PROCESS_BYTES // 2**20} MiB" in row
