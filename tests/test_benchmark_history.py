"""Figures of benchmarks are kept by commit, and drawn."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import history, peers_plot
from benchmarks.plot import OURS_COLOUR, draw

RUN = {
    "machine": {"cpu": "a processor", "cores": 2, "date": "2026-11-29T00:00:00+00:00"},
    "found": [
        {
            "name": "a scan",
            "series": [
                {"system": "rowsieve", "samples": [{"cpu_s": 3.0}, {"cpu_s": 1.0}, {"cpu_s": 2.0}]},
                {"system": "a peer", "samples": [{"cpu_s": 9.0}]},
            ],
        },
        {"name": "not measured", "series": [{"system": "rowsieve", "samples": []}]},
    ],
}


def test_our_medians_of_a_run_become_figures() -> None:
    (figure,) = history.figures_of(RUN, "abc", "full")
    assert figure == history.Figure(
        "abc", "2026-11-29", "a processor, 2 cores", "full", "a scan", 2
    )


def test_figures_are_appended_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.csv"
    path.write_text(",".join(history.HEADER) + "\n")
    monkeypatch.setattr(history, "FIGURES", path)
    figures = history.figures_of(RUN, "abc", "full")
    history.append(figures)
    assert history.read() == figures


def test_the_plot_has_a_line_per_case_and_a_point_per_commit() -> None:
    (first,) = history.figures_of(RUN, "abc", "full")
    later = replace(first, commit="def", cpu_s=1.0)
    other = replace(first, case="another", cpu_s=2.01)
    tree = ElementTree.fromstring(history.draw([first, other, later]))
    kinds = [element.tag.rpartition("}")[2] for element in tree.iter()]
    assert (kinds.count("polyline"), kinds.count("circle")) == (2, 3)
    labels = [text.text for text in tree.iter() if text.tag.endswith("text")]
    assert {"abc", "def", "a scan", "another"} <= set(labels)


def test_the_plot_in_the_docs_is_of_the_figures_in_the_project() -> None:
    with history.FIGURES.open(encoding="utf-8") as file:
        assert next(csv.reader(file)) == list(history.HEADER)
    assert history.PLOT.read_text("utf-8") == history.draw(history.read())


def test_the_axes_are_named() -> None:
    plot = history.draw(history.read())
    assert all(f">{name}<" in plot for name in history.AXES)
    assert history.PLOT.read_text("utf-8") == plot


def test_our_bar_is_in_every_plot_of_the_peers() -> None:
    measured = peers_plot.cases()
    assert len(measured) > 15
    assert {case.series[0].system for case in measured} == {history.OURS}
    plot = draw(measured)
    assert plot.count(OURS_COLOUR) == len(measured)
    assert peers_plot.PLOT.read_text("utf-8") == plot
