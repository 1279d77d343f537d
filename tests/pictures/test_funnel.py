"""The funnel of a query has the numbers of its explanation."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowsieve import Table
from rowsieve.pictures.condition_tree import ConditionNode
from rowsieve.pictures.funnel import Funnel, Stage
from rowsieve.planner.explaining.condition_verdicts import MAX_TERMS
from rowsieve.planner.explaining.reasons import PartReason
from rowsieve.planner.explanation import Explanation
from tests.pictures.parsed import HOSTILE, page_of, texts
from tests.small_tables import keyed, kv


@pytest.fixture(scope="module")
def table() -> Table:
    table = keyed({"k": [*range(12)], "v": [*range(12)]}, {"k": [3, 4, 20], "v": [50, 60, 70]})
    table.delete(keys=pa.table({"k": [5]}))
    table.upsert(kv((100, 1), (101, None)))
    return table


def cells(explanation: Explanation) -> dict[str, list[str]]:
    root = page_of(explanation.picture())
    stages = next(root.iter("table"))
    return {texts(row, "th")[0]: texts(row, "td") for row in stages.iter("tr") if texts(row, "td")}


def test_stages_are_those_of_the_explanation(table: Table) -> None:
    explanation = table.scan("v > 40 AND k < 90").explain(analyze=True)
    stages = cells(explanation)
    assert list(stages) == [
        *("parts", "bytes of parts", "row groups", "pages", "bytes of columns", "rows")
    ]
    assert stages["parts"][1:] == ["4", "1 by key ranges; 1 by statistics", "2"]
    assert stages["rows"][1] == "17"
    assert explanation.measured is not None
    assert "3 returned" in stages["rows"][3]
    assert explanation.measured["rows_returned"] == 3


def test_an_analysis_is_measured_and_others_are_not(table: Table) -> None:
    analyzed = table.scan("v > 40").explain(analyze=True)
    assert "  measured " in str(analyzed)
    assert "Time by phase" in analyzed._repr_html_()
    plain = table.scan("v > 40").explain(row_groups=True)
    assert plain.measured is None
    assert "Time by phase" not in plain._repr_html_()
    assert plain.as_dict()["measured"] is None


def test_the_tree_has_a_verdict_at_each_node(table: Table) -> None:
    tree = table.scan("(k < 90 AND v > 40) OR NOT (v IN (1, 2))").explain().tree
    assert tree is not None
    assert [len(tree.terms), len(tree.terms[0].terms)] == [2, 2]
    nodes = [tree, *tree.terms, *tree.terms[0].terms]
    assert {node.none + node.some + node.all for node in nodes} == {4}
    less = tree.terms[0].terms[0]
    assert (less.text, less.none, less.some, less.all) == ('"k" < 90', 1, 0, 3)


def test_a_wide_tree_is_cut_and_says_so(table: Table) -> None:
    condition = " OR ".join(f"v + {n} = {n * n}" for n in range(40))
    tree = table.scan(condition).explain().tree
    assert tree is not None
    assert (len(tree.terms), tree.omitted) == (MAX_TERMS, 40 - MAX_TERMS)
    assert "and 28 more" in table.scan(condition).explain()._repr_html_()


def test_no_condition_has_no_tree(table: Table) -> None:
    assert table.scan().explain().tree is None
    page_of(table.scan().explain().picture())


def test_a_query_over_ten_thousand_parts_is_small() -> None:
    """Under 300 KB."""
    skipped = tuple(
        PartReason(f"{n:032x}", 5, 10, "key", f'"name" = {"x" * 300}', {"k": "y" * 300})
        for n in range(10_000)
    )
    explanation = Explanation("t", 1, "k", 10_001, 1, 10, 10, 1, 0, filtered=True, skipped=skipped)
    assert len(explanation.picture().to_html().encode()) < 300_000
    assert cells(explanation)["parts"][1:] == ["10,001", "10,000 by key ranges", "1"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_conditions_stay_text(name: str) -> None:
    stage = Stage(name, 3, 1, (("key", name, 2),), note=name)
    tree = ConditionNode(name, 1, 1, 1, (ConditionNode(name, 0, 0, 0),), 2)
    rows = [(name, 1, 2, name, name, name)]
    page_of(Funnel(name, 1, name, (stage,), (), tree, ((name, 0.0),), rows, 1))
