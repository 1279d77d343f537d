"""The generated reference has every public name, with its types and its text."""

from __future__ import annotations

import re

import pytest

import rowsieve
from rowsieve import errors
from tools import api


@pytest.fixture(scope="module")
def page() -> str:
    return api.page()


def test_every_public_name_has_an_entry(page: str) -> None:
    headings = set(re.findall(r"^### `(\w+)`$", page, re.MULTILINE))
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.RowsieveError)
    }
    assert set(rowsieve._HOMES) | kinds <= headings
    assert "did_you_mean" not in headings


def test_every_method_of_a_table_has_types_and_a_text(page: str) -> None:
    names = [name for name in dir(rowsieve.Table) if not name.startswith("_")]
    sections = dict(
        re.findall(r"^#### `Table\.(\w+)`\n(.*?)(?=^#)", page, re.MULTILINE | re.DOTALL)
    )
    assert [name for name in names if name not in sections] == []
    without_types = [name for name, text in sections.items() if "->" not in text]
    without_text = [name for name, text in sections.items() if not text.split("```")[-1].strip()]
    assert (without_types, without_text) == ([], [])


def test_signatures_have_plain_types(page: str) -> None:
    assert "Annotated[" not in page
    assert "limit: int | None = None," in page
    assert re.search(r"^upsert\(\n    data: Any,\n    \*,\n    on_duplicate: ", page, re.MULTILINE)


def test_types_of_arguments_are_explained(page: str) -> None:
    explained = dict(api.argument_types())
    assert explained["TableUri"]
    assert "- `TableUri`: " in page
