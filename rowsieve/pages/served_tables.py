"""The pages of one table, and of the tables of a catalog. Each request sees the newest version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlencode

from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.pages.site import Page, Query
from rowsieve.pictures.data_table import Raw, data_table, scrolled
from rowsieve.pictures.markup import NOTHING, Markup, element, named, text
from rowsieve.pictures.page import Picture, page, section
from rowsieve.table import Table

_FASTEST_S: Final = 2
_SLOWEST_S: Final = 3_600


def table_pages(open_table: Callable[[], Table]) -> dict[str, Page]:
    """The pages of a table that is opened again for each request."""
    return {"/": lambda query: _table_page(open_table(), query, "/")}


def catalog_pages(
    uri: str, names: Callable[[], Sequence[str]], open_table: Callable[[str], Table]
) -> dict[str, Page]:
    """The list of a catalog's tables, and a page for each of them."""

    def table(query: Query) -> str:
        name = query.get("name", "")
        if name not in names():
            raise InvalidInput(f"ui: the catalog has no table {name!r}; see the list of its tables")
        return _table_page(open_table(name), query, "/table", name)

    return {"/": lambda _: _list_page(uri, names()), "/table": table}


def _list_page(uri: str, names: Sequence[str]) -> str:
    rows = [
        (Raw(element("a", named(name), href=f"/table?{urlencode({'name': name})}")),)
        for name in names
    ]
    table = data_table("Tables", ("table",), rows, most=len(rows))
    shown = element(
        "section",
        scrolled("Tables", table) if rows else element("p", text("There are no tables.")),
        class_="rowsieve-picture",
    )
    return page(f"Tables of {uri}", [shown])


def _table_page(table: Table, query: Query, path: str, name: str = "") -> str:
    sections = [_head(table, query, path, name)]
    for draw in _pictures(table, query):
        try:
            sections.append(section(draw()))
        except RowsieveError as error:
            sections.append(_error(error))
    return page(f"{name or table.uri}", sections, _refreshed(query))


def _pictures(table: Table, query: Query) -> Iterator[Callable[[], Picture]]:
    where, column = query.get("where"), query.get("column")
    if where is not None:
        yield lambda: table.scan(where).explain(row_groups=True).picture()
    yield lambda: table.key_ranges(where, column=column)
    yield table.health
    yield table.timeline


def _head(table: Table, query: Query, path: str, name: str) -> Markup:
    """What the table is, and a form for a condition and a column."""
    columns = [(field.name, str(field.type)) for field in table.schema]
    hidden = element("input", type="hidden", name="name", value=name) if name else NOTHING
    fields = [
        element("label", text(label), text(" "), _input(key, query.get(key, ""), width))
        for key, label, width in (
            ("where", "condition", 40),
            ("column", "column of the ranges", 12),
            ("refresh", "reload every … seconds", 5),
        )
    ]
    form = element(
        "form",
        hidden,
        *(element("p", field) for field in fields),
        element("p", element("button", text("Show"))),
        method="get",
        action=path,
    )
    back = [element("p", element("a", text("All tables"), href="/"))] if name else []
    return element(
        "section",
        element("p", text(f"version {table.version}, key {', '.join(table.key) or 'none'}")),
        *back,
        form,
        element(
            "details",
            element("summary", text(f"{len(columns):,} columns")),
            scrolled("Columns", data_table("Columns", ("column", "type"), columns)),
        ),
        class_="rowsieve-picture",
    )


def _input(name: str, value: str, width: int) -> Markup:
    return element("input", name=name, value=value, size=width, dir="auto")


def _refreshed(query: Query) -> Markup:
    """Ask the browser to load the page again, if the query says how often."""
    try:
        seconds = int(query.get("refresh", ""))
    except ValueError:
        return NOTHING
    seconds = min(max(seconds, _FASTEST_S), _SLOWEST_S)
    return element("meta", http_equiv="refresh", content=str(seconds))


def _error(error: RowsieveError) -> Markup:
    return element(
        "section",
        element("h2", text(type(error).__name__)),
        element("p", text(error, 2_000)),
        class_="rowsieve-picture",
        role="alert",
    )
