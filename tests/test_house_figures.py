"""What `make house` prints is true."""

from __future__ import annotations

from tests import house


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": ["d"], "f": ["a"]}
    found = sorted(sorted(one) for one in house._strongly_connected(graph))
    assert found == [["a", "b", "c"], ["d", "e"], ["f"]]


def test_the_figures_of_the_house_are_printed() -> None:
    lines: list[str] = []
    house.main(lines.append)
    (total,) = (line for line in lines if line.startswith("rowsieve: "))
    assert total.startswith(f"rowsieve: {sum(map(house.line_count, house.sources())):,} lines")
    assert {"longest files:", "circles of rooms:", "names that only tests use:"} <= set(lines)
    assert "  predicate/functions/text_building.py" in lines  # where lpad is
