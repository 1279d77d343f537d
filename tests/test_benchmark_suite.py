"""The suite of benchmarks runs at tiny sizes with the peers that are here, and says who is missing.

Nothing here looks at the clock, and no environment is made for a peer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from rich.console import Console

from benchmarks import data
from benchmarks.markdown import cpu, table
from benchmarks.measure import Sample, Series
from benchmarks.peers import environments
from benchmarks.peers.environments import NotInstalled, python_of, version_of
from benchmarks.peers.protocol import Keys
from benchmarks.peers.registry import KINDS, OURS, SYSTEMS, System
from benchmarks.peers.rowsieve_table import Rowsieve
from benchmarks.plot import draw
from benchmarks.report import print_cases
from benchmarks.result import Case, WrongAnswer
from benchmarks.suite import __main__ as suite
from benchmarks.suite.cases import CASES
from benchmarks.suite.field import Field
from benchmarks.suite.install import not_installed
from benchmarks.suite.runners import Child, InProcess, PeerFailed, Start
from benchmarks.suite.sizes import TINY
from tests.daily import is_due

pytestmark = pytest.mark.usefixtures("no_old_garbage")


TIMES = (("a", 0.0123), ("b", 1234.0))


def here(start: Start = InProcess, *only: str) -> Callable[[str, Path], Field]:
    """Fields of the systems of this environment."""

    def new_field(kind: str, folder: Path) -> Field:
        systems = [s for s in KINDS[kind] if s.environment is None and (s.name in only or not only)]
        absent = not_installed(systems, make=False)
        return Field(kind, [s for s in systems if s.name not in absent], start, folder, absent)

    return new_field


@pytest.mark.parametrize("name", list(CASES))
def test_a_group_of_the_suite_is_measured(name: str, tmp_path: Path) -> None:
    if not is_due(list(CASES).index(name), 3):
        pytest.skip("has its turn on another day")
    cases = CASES[name](TINY, tmp_path, here())
    assert cases
    for case in cases:
        assert case.series[0].system == OURS
        assert len(case.series) > 1, case.absent
        assert not [why for why in case.absent.values() if why.startswith("failed")]
        assert all(series.samples for series in case.series)
    print_cases(cases, Console(width=160, record=True))
    drawing = ElementTree.fromstring(draw(cases))
    texts = [element.text for element in drawing.iter() if element.tag.endswith("text")]
    assert texts.count(OURS) == len(cases)


def test_the_life_of_a_table_is_read_after_every_change(tmp_path: Path) -> None:
    names = [case.name for case in CASES["life"](TINY, tmp_path, here(InProcess, OURS))]
    for state in ("clean", "after 1%", "after 50%"):
        for read in ("full scan", "1% range", "point", "count"):
            assert f"{read}, {state}" in names
    assert {"load", "upsert of 10, 1% in all", "compaction after 50%"} <= set(names)


def test_systems_run_in_processes_of_their_own(tmp_path: Path) -> None:
    (opened, planned) = CASES["planning"](TINY, tmp_path, here(Child, OURS))
    assert opened.series[0].first is not None
    assert planned.series[0].samples[0].cpu_s > 0


def test_the_suite_is_run_and_saved(tmp_path: Path) -> None:
    arguments = ["--only", "opening", "--peers", "deltalake", "--installed", "--sizes", "tiny"]
    suite.main([*arguments, "--results", str(tmp_path), "--work", str(tmp_path)])
    saved = msgspec.json.decode((tmp_path / "suite.json").read_bytes())
    assert [case["series"][0]["system"] for case in saved["found"]] == [OURS]
    assert (tmp_path / "suite.svg").read_text().startswith("<svg")
    assert "| opening after 3 commits |" in (tmp_path / "suite.md").read_text()


def test_a_wrong_answer_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Rowsieve.select
    monkeypatch.setattr(Rowsieve, "select", lambda self, where: honest(self, where).slice(1))
    with pytest.raises(WrongAnswer, match="rowsieve"):
        CASES["life"](TINY, tmp_path, here(InProcess, OURS))


def test_a_peer_that_fails_drops_out_and_says_why(tmp_path: Path) -> None:
    broken = System("broken", "rowsieve_table:Nothing", "rowsieve")
    field = Field("systems", [SYSTEMS[0], broken], Child, tmp_path, {})
    with field.fresh():  # the child finds no such system
        pass
    assert [system.name for system in field.systems] == [OURS]
    assert field.absent["broken"].startswith("failed: exit code 1")


def test_ours_may_not_drop_out(tmp_path: Path) -> None:
    field = Field("systems", [SYSTEMS[0]], Child, tmp_path, {})
    with pytest.raises(PeerFailed, match="TableNotFound"), field.fresh():
        field.each("open")


def test_a_peer_that_is_not_installed_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "CACHE", tmp_path)
    (lance,) = (system for system in SYSTEMS if system.name == "Lance")
    with pytest.raises(NotInstalled, match="has not been made"):
        python_of(lance, make=False)
    gone = System("gone", "gone:Gone", "no_such_package")
    with pytest.raises(NotInstalled, match="no_such_package"):
        python_of(gone, make=True)
    assert not_installed([lance, gone], make=False).keys() == {"Lance", "gone"}


def test_an_environment_that_pip_cannot_make_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = tmp_path / "gone.txt"
    requirements.write_text(f"{tmp_path}/no-such-file.whl\n")
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(System, "requirements", requirements)
    with pytest.raises(NotInstalled, match="ERROR"):
        python_of(System("gone", "gone:Gone", "gone", "gone"), make=True)


def test_every_peer_is_pinned() -> None:
    for system in (system for kind in KINDS.values() for system in kind if system.environment):
        assert system.requirements is not None
        assert version_of(system)
        lines = system.requirements.read_text().splitlines()
        assert all("==" in line and "/" not in line for line in lines)


def test_a_table_has_a_dash_where_a_system_is_not_in_a_case() -> None:
    one, two = (Series(name, samples=[Sample(cpu_s=seconds)]) for name, seconds in TIMES)
    lines = table([Case("both", [one, two]), Case("alone", [one])], cpu).splitlines()
    assert lines[0] == "|  | a | b |"
    assert lines[2:] == ["| both | 12.3 ms | 1234 s |", "| alone | 12.3 ms | - |"]


def test_conditions_as_sql() -> None:
    assert (Keys().sql, Keys(4, 4).sql) == ("TRUE", "id = 4")
    assert Keys(2, 8).where == " WHERE id >= 2 AND id <= 8"


@pytest.mark.parametrize("other", [2, 5])
def test_the_digest_sees_a_changed_cell(other: int) -> None:
    one = data.rows(10)
    assert data.digest(one) == data.digest(one.sort_by([("id", "descending")]))
    assert data.digest(one) != data.digest(data.replaced(one, data.changes(10, 1, seed=other)))
