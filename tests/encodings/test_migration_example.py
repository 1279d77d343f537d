"""The example of a migration: the same rows at each step, there and back."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "migrate_encoding.py"


def test_each_step_of_the_example_has_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("migrate_encoding", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(example, "READINGS", 400)
    example.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 9
    matching = [int(line[line.index("rows") - 1]) for line in lines]
    ids = [range(400 + 10 * step) for step in range(1, 10)]
    assert matching == [sum(n % 2 == 1 and n % 40 < 5 for n in each) for each in ids]
    compared = [line[line.index("compared") - 1] for line in lines]
    assert compared == ["0", "0", "430", "0", "0", "0", "470", "0", "0"]
    assert all(line[line.index("differ") - 1] == "0" for line in lines)
