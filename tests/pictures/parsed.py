"""Reads a page as the tree it is: a picture is well-formed XML besides its doctype."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from rowsieve.pictures.page import Picture

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</style></title></svg>",
    "a\x00b\x1b[31m\x07\r\n",
    "\u202egnp.exe",
    "\u0645\u0631\u062d\u0628\u0627 {{x}} &amp; url(#x)",
    "\ud800 lone",
    "",
)
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "h1", "h2", "h3", "p"),
    *("div", "ul", "li", "dl", "dt", "dd", "b", "code", "bdi", "table", "caption", "thead"),
    *("tbody", "tr", "th", "td", "details", "summary", "svg", "g", "rect", "line", "path", "text"),
    *("desc", "defs", "pattern", "a", "circle", "nav"),
}


def page_of(picture: Picture) -> ET.Element:
    """The tree of a picture's page, with what every page must have and must not."""
    text = picture.to_html()
    text.encode("utf-8")
    doctype, _, rest = text.partition("\n")
    assert doctype == "<!DOCTYPE html>"
    root = ET.fromstring(rest)
    check_inert(root)
    assert ET.fromstring(f"<div>{picture._repr_html_()}</div>") is not None
    return root


def check_inert(root: ET.Element) -> None:
    """No script, no handler, no style of an element's own, no address; every id once."""
    for element in root.iter():
        assert element.tag in ALLOWED, element.tag
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name not in ("style", "src"), name
            if name in ("href", "fill") and ("#" in value or ":" in value):
                assert value.startswith(("#", "url(#")), value
    ids = Counter(element.get("id") for element in root.iter() if element.get("id"))
    assert [name for name, count in ids.items() if count > 1] == []
    named = {
        name for element in root.iter() for name in (element.get("aria-labelledby") or "").split()
    } | {
        element.attrib["href"][1:]
        for element in root.iter()
        if element.get("href", "").startswith("#")
    }
    assert named <= set(ids)


def texts(root: ET.Element, tag: str) -> list[str]:
    """The whole text of each element with this tag."""
    return ["".join(element.itertext()) for element in root.iter(tag)]


def with_class(root: ET.Element, kind: str) -> list[ET.Element]:
    """The elements that have a class."""
    return [element for element in root.iter() if kind in (element.get("class") or "").split()]
