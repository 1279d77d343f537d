"""`progress=True`: a bar on stderr or in a notebook, never on stdout, and nothing without it."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import rowsieve as rs
from rowsieve.progress_bars import bar_html

OFF = """
import sys, pyarrow as pa, rowsieve as rs
t = rs.create_table(sys.argv[1], pa.table({"id": [1]}), ["id"])
t.compact(); t.verify(); t.scan().to_arrow(); t.verify(progress=False)
assert not {"rich", "IPython"} & set(sys.modules), "imported"
"""


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    made = rs.create_table(tmp_path / "t", pa.table({"id": [1, 2]}), ["id"])
    made.upsert(pa.table({"id": [2, 3]}))
    return made


def work(table: rs.Table, **given: Any) -> None:
    table.scan().to_arrow(**given)
    table.upsert(pa.table({"id": [3]}), **given)
    table.clone(f"{table.uri}-copy", **given)
    table.verify(**given)
    table.compact(**given)
    table.maintain(**given)
    table.vacuum(**given)


def test_a_bar_is_drawn_on_a_terminal_and_stdout_stays_empty(
    table: rs.Table, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    work(table, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    for label in ("parts read", "rows written", "files copied", "files compared", "rows rewritten"):
        assert label in err


def test_a_write_tells_its_rows(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    rows = pa.table({"id": range(70_000)})
    keyed = rs.create_table(tmp_path / "keyed", rows.schema, ["id"])
    keyed.upsert(rows, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(65_536, 70_000), (70_000, 70_000)]
    keyed.upsert(rows.slice(0, 1))
    calls.clear()
    keyed.overwrite(rows.slice(0, 9), progress=lambda done, total: calls.append((done, total)))
    plain = rs.create_table(tmp_path / "plain", rows.schema)
    plain.append(rows.slice(0, 8), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(9, 9), (8, 8)]
    assert plain.scan().to_arrow().num_rows == 8


def test_nothing_is_drawn_where_stderr_is_no_terminal(
    table: rs.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    work(table, progress=True)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_imported_without_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", OFF, str(tmp_path / "t")], check=True)


def test_a_function_gets_the_numbers(table: rs.Table) -> None:
    calls: list[tuple[int, int]] = []
    table.verify(progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > 0


def test_a_notebook_shows_html_that_is_updated(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []
    handle = types.SimpleNamespace(update=shown.append)

    def display(picture: str, *, display_id: bool) -> Any:
        assert display_id
        shown.append(picture)
        return handle

    ipython = types.ModuleType("IPython")
    monkeypatch.setattr(
        ipython, "get_ipython", lambda: types.SimpleNamespace(kernel=1), raising=False
    )
    module = types.ModuleType("IPython.display")
    monkeypatch.setattr(module, "HTML", str, raising=False)
    monkeypatch.setattr(module, "display", display, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    table.verify(progress=True)
    assert shown[-1].startswith("<label>files compared <progress value='")
    assert capsys.readouterr() == ("", "")


def test_the_label_of_a_bar_is_escaped() -> None:
    assert "<b>" not in bar_html("<b>", 1, 2)
    assert "1 of 2" in bar_html("x", 1, 2)


def test_an_import_tells_its_files_once_without_and_twice_with_a_key(tmp_path: Path) -> None:
    for number in range(70):
        rows = pa.table({"id": [2 * number, 2 * number + 1]})
        write_deltalake(tmp_path / "delta", rows, mode="append")
        (tmp_path / "files").mkdir(exist_ok=True)
        pq.write_table(rows, tmp_path / "files" / f"{number:02}.parquet")
    imports: tuple[tuple[str, Callable[..., rs.Table]], ...] = (
        ("delta", rs.import_delta),
        ("files", rs.from_parquet),
    )
    for name, call in imports:
        for key, total in ((None, 70), (["id"], 140)):
            calls: list[tuple[int, int]] = []
            table = call(
                tmp_path / name,
                tmp_path / f"{name}-{total}",
                key=key,
                progress=partial(_note, calls),
            )
            assert table.count() == 140
            assert calls[0] == (64, total)
            assert calls[-1] == (total, total)
            assert calls == sorted(set(calls))


def _note(calls: list[tuple[int, int]], done: int, total: int) -> None:
    calls.append((done, total))


def test_a_new_table_tells_its_rows(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    rows = pa.table({"id": range(70_000)})
    rs.create_table(tmp_path / "t", rows, ["id"], progress=partial(_note, calls))
    assert calls == [(65_536, 70_000), (70_000, 70_000)]


def test_a_bar_of_an_import_is_drawn_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    rs.from_parquet(tmp_path / "a.parquet", tmp_path / "t", ["id"], progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "files read" in err


def test_changes_by_condition_and_exact_summaries_show_what_they_did(tmp_path: Path) -> None:
    rows = pa.table({"id": range(9), "v": range(9)})
    table = rs.create_table(tmp_path / "t", rows, ["id"])
    table.delete("id = 8")
    calls: dict[str, list[tuple[int, int]]] = {}

    def noted(name: str) -> Callable[[int, int], None]:
        return lambda done, total: calls.setdefault(name, []).append((done, total))

    table.summarize(exact=True, progress=noted("summarize"))
    table.profile(exact=True, progress=noted("profile"))
    table.update({"v": "v + 1"}, where="id < 3", progress=noted("update"))
    table.delete("id < 2", progress=noted("delete"))
    table.delete(keys={"id": [2]}, progress=noted("keys"))
    merging = table.merge([{"id": 3, "v": 0}, {"id": 20, "v": 0}], on="id")
    merging.when_matched_update_all().when_not_matched_insert_all().execute(progress=noted("merge"))
    assert {name: each[-1] for name, each in calls.items()} == {
        "summarize": (2, 2),
        "profile": (2, 2),
        "update": (3, 3),
        "delete": (2, 2),
        "keys": (1, 1),
        "merge": (2, 2),
    }
