"""A procedure that dies at any step on the disk leaves the table before or after it, or between
two of its commits: every version reads its rows, a second call ends the work, and a vacuum leaves
the files of the newest version and no other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from rowsieve.retention import leases
from rowsieve.storage.log.floors import floors_of
from tests.faults.files import FileCalls
from tests.faults.vocabulary import Crash
from tests.procedures.test_meanwhile import PROCEDURES, Work, call, change, content, make
from tests.profiles import IS_DEEP

WORKS: dict[str, Work] = {
    **PROCEDURES,
    "remove_orphan_files": call("remove_orphan_files('db', 't', grace_s => 0)"),
    "rewrite_manifests": call("rewrite_manifests('db', 't')"),
    "vacuum without grace": call("vacuum('db', 't', retain_last => 1, grace_s => 0)"),
    "maintain": change(lambda table: table.maintain(retain_last=1, grace_s=0)),
}
NAMES = WORKS if IS_DEEP else ("rewrite_position_delete_files", "maintain")
REFUSED = {("add_files", ("id",)), ("build_deletion_vectors", None)}
"""Procedures that a table with this key refuses."""


@contextmanager
def dying(at: int) -> Iterator[FileCalls]:
    """Die before a call of the file system, counted from 0; at -1, none. Yields the calls."""
    with pytest.MonkeyPatch.context() as patch:
        yield FileCalls(patch, fail_at=at)


@cache
def origin(folder: Path, key: tuple[str, ...] | None) -> Path:
    """A folder with a lake, to be copied."""
    place = folder / f"origin-{key}"
    make(place, key)
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


def lake(origin: Path, place: Path) -> rs.Catalog:
    shutil.copytree(origin, place)
    return rs.Catalog(place / "lake")


def versions(catalog: rs.Catalog) -> dict[int, Any]:
    """The rows of each version that can be read."""
    table = catalog.open_table("db.t")
    oldest = floors_of(table.handle.pinned.table.properties).oldest_version
    return {
        version: sorted(table.scan(version=version).to_arrow().to_pylist(), key=repr)
        for version in range(oldest, table.version + 1)
    }


def clean(catalog: rs.Catalog, place: Path) -> None:
    """Let the leases of dead processes end, run a vacuum, and look for files that nobody needs."""
    table = catalog.open_table("db.t")
    for path in (place / "lake/db/t/_rowsieve/leases").glob("*.json"):
        os.utime(path, (0, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "SECOND_LOOK_S", 0.0)
        table.set_properties({"audit_percent": "1"})  # what failed was based on older versions
        table.vacuum(retain_last=1, grace_s=0)
    root = place / "lake/db/t"
    left = {path.relative_to(root).as_posix() for path in (root / "data").iterdir()}
    temporary = {path for path in left if ".tmp-" in path}  # they stay for an hour
    rs.Catalog(place / "lake").open_table("db.t")
    assert left - temporary == set(table.files().column("path").to_pylist())


@pytest.mark.parametrize(
    ("name", "key"),
    [
        pytest.param(name, key, id=f"{name}-{'key' if key else 'no key'}")
        for name in NAMES
        for key in (("id",), None)
        if (name, key) not in REFUSED
    ],
)
def test_a_procedure_that_dies_is_ended_by_the_next_call(
    name: str, key: tuple[str, ...] | None, folder: Path, tmp_path: Path
) -> None:
    start, work = origin(folder, key), WORKS[name]
    twin = lake(start, tmp_path / "twin")
    before, rows = versions(twin), content(twin)
    with dying(-1) as calls:
        work(twin)
    wanted = content(twin)
    steps = calls.log
    for at in range(len(steps)) if IS_DEEP else (5, len(steps) - 3):
        place = tmp_path / str(at)
        catalog = lake(start, place)
        with dying(at), suppress(Crash):
            work(catalog)
        found = versions(rs.Catalog(catalog.uri))
        assert all(found[version] == before[version] for version in before if version in found)
        assert content(rs.Catalog(catalog.uri)) in (rows, wanted), (at, steps[at])
        with suppress(UnsupportedOperation):  # the commit is repeated already
            work(rs.Catalog(catalog.uri))
        assert content(rs.Catalog(catalog.uri)) == wanted, (at, steps[at])
        clean(rs.Catalog(catalog.uri), place)
        assert content(rs.Catalog(catalog.uri)) == wanted
        shutil.rmtree(place)
