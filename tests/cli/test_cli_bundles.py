"""Groups of options become options of their own, each once."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from rowsieve.cli.bundles import CommitOptions, FileOptions, OnceOptions, expanded

FOUND: list[tuple[Path, FileOptions, bool, OnceOptions]] = []


def changing(file: Path, *, reading: FileOptions, deep: bool = False, commit: OnceOptions) -> None:
    """Change it."""
    FOUND.append((file, reading, deep, commit))


def doubled(*, commit: OnceOptions, other: CommitOptions) -> None:
    """Two groups with the same options."""


def test_each_field_of_a_group_is_an_option_with_its_default() -> None:
    command = expanded(changing)
    parameters = inspect.signature(command).parameters
    assert list(parameters)[:5] == ["file", "file_format", "delimiter", "null", "deep"]
    assert list(parameters)[5:] == ["storage_option", "as_json", "metadata", "token"]
    assert parameters["as_json"].default is False
    assert command.__doc__ == "Change it."
    given = dict.fromkeys(list(parameters)[1:]) | {"metadata": ["a=b"], "token": "x:3"}
    command(file=Path("f.csv"), **given)
    ((file, reading, _, commit),) = FOUND
    assert file == Path("f.csv")
    assert reading == FileOptions()
    assert (commit.notes, commit.once, commit.storage) == ({"a": "b"}, ("x", 3), {})


def test_two_options_of_one_name_are_an_error() -> None:
    with pytest.raises(ValueError, match="duplicate parameter name"):
        expanded(doubled)
