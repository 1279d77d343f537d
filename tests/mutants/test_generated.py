"""A module has a generated fault at each comparison, connective, number and condition."""

from __future__ import annotations

from tests.mutants.generated import faults

MODULE = "def f(a, b):\n    if a:\n        return min(a, 2) < b and a + b in b\n    return False\n"


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
        assert fault.line in (2, 3, 4)
