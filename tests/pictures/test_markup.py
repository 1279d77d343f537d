"""Escaping: hostile names stay text, and what is drawn is well-formed."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from rowsieve.pictures.markup import element, percent, text
from rowsieve.pictures.page import POLICY
from tests.pictures.parsed import HOSTILE


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_is_text_in_content_and_attributes(value: str) -> None:
    root = ET.fromstring(element("p", text(value), title=value, aria_label=value))
    assert list(root) == []
    shown = root.text or ""
    assert shown.isprintable()
    assert root.attrib == {"title": shown, "aria-label": shown}
    if value.isprintable():
        assert shown == value


def test_long_values_are_cut_before_they_are_escaped() -> None:
    assert text("<" * 300, 4) == "&lt;&lt;&lt;…"


def test_attributes_without_a_value_are_left_out() -> None:
    assert element("rect", x=0.123456, class_="a", id=None) == '<rect x="0.12346" class="a"/>'


@pytest.mark.parametrize(("share", "shown"), [(-1.0, "0%"), (0.5, "50%"), (7.0, "100%")])
def test_coordinates_stay_inside(share: float, shown: str) -> None:
    assert percent(share) == shown


def test_the_policy_allows_one_style_and_nothing_else() -> None:
    assert POLICY.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in POLICY
