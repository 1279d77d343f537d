"""`rowsieve.predicate` and `rowsieve.RowSet`: what engine builders import."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import rowsieve as rs
from rowsieve import predicate
from rowsieve.predicate import ir
from rowsieve.predicate.rowset import RowSet


def test_every_public_name_is_defined_in_its_module() -> None:
    for name in predicate.__all__:
        found = getattr(predicate, name)
        assert not isinstance(found, types.ModuleType) or callable(found), name
        assert not hasattr(ir, name) or getattr(ir, name) is found
    assert set(predicate.__all__) <= set(dir(predicate))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = predicate.nothing


def test_row_sets_are_public() -> None:
    assert rs.RowSet is predicate.RowSet is RowSet


def test_the_package_alone_imports_none_of_its_modules() -> None:
    code = "import sys, rowsieve.predicate; print([m for m in sys.modules if 'predicate.' in m])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
