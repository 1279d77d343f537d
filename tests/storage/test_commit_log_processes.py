"""Several processes commit to one table at once, on a real disk."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

from rowsieve.objects import open_store
from rowsieve.storage.log.commit_log import CommitLog
from tests.processes import start
from tests.storage.log_fixtures import commit_many, create

WRITERS, COMMITS = 8, 20


def test_eight_processes_lose_nothing(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    create(open_store(uri))
    writers = [start(commit_many, uri, writer, COMMITS) for writer in range(WRITERS)]
    for process in writers:
        process.join()
    assert [process.exitcode for process in writers] == [0] * WRITERS

    log = CommitLog(open_store(uri))
    head = log.latest()
    assert head.version == WRITERS * COMMITS
    keys = head.parts.table.column("key.1.lower").to_pylist()
    assert sorted(keys) == [w * 1000 + i for w in range(WRITERS) for i in range(COMMITS)]
    for writer in range(WRITERS):  # each writer's commits kept their order
        mine = [key for key in keys if key // 1000 == writer]
        assert mine == sorted(mine)
        assert head.tokens[f"writer-{writer}"].sequence == COMMITS - 1
    history = log.history()
    assert Counter(line.version for line in history) == Counter(range(WRITERS * COMMITS + 1))
    times = [line.timestamp for line in history]
    assert all(newer > older for newer, older in pairwise(times))
    assert [path.name for path in tmp_path.rglob(".tmp-*")] == []
