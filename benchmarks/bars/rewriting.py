"""Bar: rewriting a whole changed table, compared with Lance and with decoding and encoding alone.

The rows are loaded in many sorted commits, then some are upserted, so that every file has a row
that a newer one hides. Each run is in a fresh process, on a fresh copy of the table.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import data
from benchmarks.bars import race
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Sample, Series
from benchmarks.peers.registry import OURS, RECODING, REWRITERS, UNKEYED, System
from benchmarks.result import Bar, Case, expect
from benchmarks.suite.child import write_ipc
from benchmarks.suite.install import not_installed
from benchmarks.suite.runners import PeerFailed, running

KIND = "rewriters"
MAX_FILES = 40
CHANGED = 0.01  # share of the rows that are upserted
LEAST_SHARE = 0.5  # of the speed of decoding and encoding


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Load the same rows into each system; rewrite a new copy in each round."""
    absent = not_installed(REWRITERS, make=sizes.make_environments)
    systems = [system for system in REWRITERS if system.name not in absent]
    for system in tuple(systems):
        try:
            _load(system, sizes, folder)
            _check(system, sizes, folder)
        except PeerFailed as error:
            if system.name.startswith(OURS):
                raise
            systems.remove(system)
            absent[system.name] = f"failed: {error}"
    series = {system.name: Series(system.name) for system in systems}
    for turn in range(sizes.long_repeats):
        shift = turn % len(systems)
        for system in systems[shift:] + systems[:shift]:
            series[system.name].samples.append(_rewrite(system, folder)[1])
    return _bar(sizes, Case("rewriting a table", list(series.values()), absent))


def _bar(sizes: Sizes, case: Case) -> Bar:
    found = {one.system: one for one in case.series}
    plain, lance = found.get(RECODING), found.get("Lance")
    shown = [f"{name} {s.cpu_s():.2f} s CPU, {s.wall_s():.2f} s" for name, s in found.items()]
    verdicts = []
    for ours in (found[OURS], found[UNKEYED]):
        if plain is not None:
            share = plain.cpu_s() / ours.cpu_s()
            verdicts.append(share >= LEAST_SHARE)
            shown.append(f"{ours.system}: {share:.0%} of decoding and encoding")
        if lance is not None:
            cpu, wall = lance.cpu_s() / ours.cpu_s(), lance.wall_s() / ours.wall_s()
            verdicts.append(min(cpu, wall) > 1)
            shown.append(f"Lance {cpu:.2f} times its CPU and {wall:.2f} times its time")
    return Bar(
        name="rewriting",
        promise=f"rewrite_data_files of {sizes.merged_rows:,} rows in {_files(sizes)} files, "
        f"{CHANGED:.0%} of them changed since, with and without a key: less CPU and time than "
        f"Lance's compaction, and at least {LEAST_SHARE:.0%} of the speed of pyarrow decoding and "
        "encoding the files, by CPU",
        found="; ".join(shown),
        met=all(verdicts) if plain is not None and lance is not None else None,
        cases=[case],
    )


def _load(system: System, sizes: Sizes, folder: Path) -> None:
    """Give the system its table, unless it uses that of another one."""
    if system.data is not None:
        return
    home = _home(system, folder)
    home.mkdir()
    files = folder / "rows"
    files.mkdir()
    with running(race.START, KIND, system, home) as runner:
        runner.ask("load", rows=[_written(rows, files) for rows in _chunks(sizes)])
        runner.ask("upsert", rows=_written(_changes(sizes), files))
    shutil.rmtree(files)
    os.sync()


def _check(system: System, sizes: Sizes, folder: Path) -> None:
    """Compare the rows after a rewrite with those that were written; decoding has none."""
    if system.data is not None:
        return
    copy, _ = _rewrite(system, folder, keep=True)
    with running(race.START, KIND, system, copy) as runner:
        runner.ask("open")
        found, _ = runner.ask("select", keys=[None, None])
    shutil.rmtree(copy)
    changed = _changes(sizes)
    gone = pa.array(changed.column(data.KEY))
    total = data.digest(changed)
    for rows in _chunks(sizes):
        kept = rows.filter(pc.invert(pc.is_in(rows.column(data.KEY), gone)))
        for name, value in data.digest(kept).items():
            total[name] += value
    expect(f"rows and sums of {system.name}", _wrapped(found), _wrapped(total))


def _wrapped(digest: Mapping[str, int]) -> dict[str, int]:
    """Sums as those of 64 bits, which overflow."""
    return {name: total % 2**64 for name, total in digest.items()}


def _rewrite(system: System, folder: Path, *, keep: bool = False) -> tuple[Path, Sample]:
    """Rewrite a copy of the table in a fresh process."""
    copy = folder / f"copy-{uuid.uuid4().hex}"  # a new name: processes remember what they read
    shutil.copytree(_home(system, folder), copy)
    os.sync()
    with running(race.START, KIND, system, copy) as runner:
        runner.ask("open")
        _, sample = runner.ask("compact")
    if not keep:
        shutil.rmtree(copy)
    os.sync()
    return copy, sample


def _home(system: System, folder: Path) -> Path:
    return folder / (system.data or system.name)


def _written(rows: pa.Table, folder: Path) -> str:
    return write_ipc(rows, folder / f"{len(list(folder.iterdir()))}.arrow")


def _chunks(sizes: Sizes) -> Iterator[pa.Table]:
    """The rows in key order, in as many pieces as there are files."""
    for seed, keys in enumerate(np.array_split(np.arange(sizes.merged_rows) * 2, _files(sizes))):
        yield data.rows_of(keys, seed)


def _files(sizes: Sizes) -> int:
    return min(MAX_FILES, sizes.small_files)


def _changes(sizes: Sizes) -> pa.Table:
    """New versions of some rows of every file, in key order."""
    rng = np.random.default_rng(1)
    count = max(1, int(sizes.merged_rows * CHANGED))
    keys = np.sort(rng.choice(sizes.merged_rows, count, replace=False)) * 2
    return data.rows_of(keys, seed=1_000)
