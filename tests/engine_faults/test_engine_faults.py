"""Each fault of an engine is still there, or its workaround may go."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests import profiles
from tests.engine_faults.fault import Fault
from tests.engine_faults.register import FAULTS, PAGE, TITLES, gone, locked_versions, page

RUN_HERE = [
    fault for fault in FAULTS if not fault.needs_spark and (profiles.IS_DEEP or not fault.is_slow)
]


@pytest.mark.parametrize("fault", RUN_HERE, ids=lambda fault: f"{fault.engine}-{fault.name}")
def test_the_installed_engine_has_the_fault(fault: Fault) -> None:
    check(fault, has_fault=fault.probe())


def check(fault: Fault, *, has_fault: bool) -> None:
    """Fail if the locked release lacks the fault; skip, with the reason, if another one does."""
    if not has_fault and fault.installed != f"{fault.engine} {locked_versions()[fault.engine]}":
        pytest.skip(gone(fault))
    assert has_fault, gone(fault)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.engine}-{fault.name}")
def test_the_workaround_stands_where_the_row_says(fault: Fault) -> None:
    words = (TITLES[fault.engine].lower().removeprefix("py"), "readers", "engine")
    for place in fault.here:
        module, name = place.split(":")
        found = importlib.import_module(module)
        assert hasattr(found, name), place
        assert found.__file__ is not None
        code = Path(found.__file__).read_text("utf-8").lower()
        assert any(word in code for word in words), f"{module} names none of {words}"


def test_probes_have_names_of_their_own() -> None:
    names = [(fault.engine, fault.name) for fault in FAULTS]
    assert len(set(names)) == len(names)


def test_the_page_is_written_from_the_register() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.engine_faults page`"
