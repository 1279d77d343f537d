"""Stories that other modules tell of tables in memory, and commits of processes, on S3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowsieve.objects import open_store
from rowsieve.storage.log.commit_log import CommitLog
from tests import profiles, small_tables
from tests.processes import start
from tests.storage.log_fixtures import commit_many, create
from tests.stores.s3_server import S3
from tests.tables.test_concurrency import (
    RACES,
    Act,
    test_a_token_counts_once_whoever_was_first,
    test_readers_of_old_versions_are_not_disturbed,
)
from tests.tables.test_concurrency import (
    test_a_race_with_a_key as run_race,
)

if profiles.IS_DEEP:
    from tests.tables.test_concurrency import test_a_race_without_a_key  # noqa: F401 - told here too
    from tests.traps.test_trap_merge import *  # noqa: F403 - all of its stories

__all__ = [
    "test_a_token_counts_once_whoever_was_first",
    "test_readers_of_old_versions_are_not_disturbed",
]

WRITERS, COMMITS = 4, 25 if profiles.IS_DEEP else 6


@pytest.fixture(autouse=True)
def tables_on_s3(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Fresh tables of these tests are on the server, whose settings are in the environment."""
    made: list[str] = []

    def fresh_uri() -> str:
        made.append(s3.fresh_uri())
        return made[-1]

    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(small_tables, "fresh_uri", fresh_uri)
    yield made
    assert any(open_store(uri).list("_rowsieve") for uri in made), "the test ran elsewhere"


@pytest.mark.parametrize("race", [*RACES.values()][:: 1 if profiles.IS_DEEP else 4])
def test_a_race_on_s3(race: tuple[Act, Act, list[tuple[int, int]]]) -> None:
    run_race(race)


def test_four_processes_commit_and_lose_nothing(tables_on_s3: list[str]) -> None:
    uri = small_tables.fresh_uri()
    create(open_store(uri))
    writers = [start(commit_many, uri, i, COMMITS) for i in range(WRITERS)]
    for process in writers:
        process.join()
    assert [process.exitcode for process in writers] == [0] * WRITERS
    head = CommitLog(open_store(uri)).latest()
    assert head.version == WRITERS * COMMITS
    keys = head.parts.table.column("key.1.lower").to_pylist()
    assert sorted(keys) == [w * 1000 + i for w in range(WRITERS) for i in range(COMMITS)]
    assert [head.tokens[f"writer-{w}"].sequence for w in range(WRITERS)] == [COMMITS - 1] * WRITERS
