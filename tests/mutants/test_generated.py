"""A module has a generated fault at each comparison, connective, number and condition."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from tests.mutants.forked import break_functions
from tests.mutants.generated import faults

MODULE = (
    "SIZE = 3\ndef f(a, b: int | None = 5):\n    if a:\n"
    "        return min(a, 2) < b and a + b in b\n    return False\n"
)


def test_each_place_of_a_module_is_broken_once() -> None:
    found = list(faults(MODULE))
    assert {fault.what for fault in found} == {
        "a condition is turned round",
        "And becomes Or",
        "Lt becomes LtE",
        "In becomes NotIn",
        "Add becomes Sub",
        "min becomes max",
        "2 becomes 3",
        "False becomes True",
    }
    assert len({fault.source for fault in found}) == len(found) == 8
    for fault in found:
        compile(fault.source, "module", "exec")
        assert fault.line in (3, 4, 5)


def test_functions_get_the_code_of_a_broken_source_wherever_they_are_held(tmp_path: Path) -> None:
    """As a process does that has collected tests: they hold functions, not the module's names."""
    file = tmp_path / "module_to_break.py"
    whole = (
        "class Shelf:\n    def holds(self, n):\n        return n < 3\n\n"
        "first = lambda n: n + 1\nsecond = lambda n: n + 2\n"
    )
    file.write_text(whole)
    spec = importlib.util.spec_from_file_location("module_to_break", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    holds, first, second = module.Shelf().holds, module.first, module.second
    break_functions(file, whole.replace("n < 3", "n <= 3").replace("n + 2", "n + 9"))
    assert (holds(3), first(0), second(0)) == (True, 1, 9)
    assert "module_to_break" not in sys.modules
