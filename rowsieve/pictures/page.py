"""`Picture`, the base of all pictures: as a fragment for a notebook, and as a page of its own.

A page carries its style and a content policy that allows this style and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from rowsieve.disk_errors import IS_FULL, described
from rowsieve.errors import InvalidInput, StoreError
from rowsieve.pictures.markup import NOTHING, Markup, element, join, text
from rowsieve.pictures.style import STYLE

_DIGEST: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{_DIGEST}'"
"""The content policy of a page: its own style, no script, no request."""


class Picture(ABC):
    """Facts that can be looked at: in a notebook by itself, in a browser after `save`."""

    __slots__ = ()

    @property
    @abstractmethod
    def title(self) -> str:
        """What the picture shows, of what."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The main numbers, as one sentence."""

    @abstractmethod
    def body(self, ident: str) -> Markup:
        """Draw; ids of elements begin with `ident`."""

    def __repr__(self) -> str:
        return f"{self.title}: {self.summary}"

    def _repr_html_(self) -> str:
        return join((element("style", Markup(STYLE)), section(self)))

    def to_html(self) -> str:
        """Return a page with this picture, which needs no other file."""
        return page(self.title, [section(self, titled=False)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; replaces the file, once the new one is whole."""
        write_html(self.to_html(), path)


def write_html(text: str, path: str | os.PathLike[str]) -> None:
    """Write a page to a file; InvalidInput for a wrong path, StoreError on a full disk.

    A file that is there stays as it was after an error.
    """
    try:
        _replace(Path(os.path.realpath(path)), text)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in IS_FULL:
            raise StoreError(
                f"the page cannot be written to {os.fspath(path)!r}: {described(error)}"
            ) from error
        raise InvalidInput(
            f"the page cannot be written to {os.fspath(path)!r}: {error}; give a file in a folder "
            "that exists and may be written"
        ) from error


def _replace(path: Path, text: str) -> None:
    """Replace a file by a temporary one that has the text; write directly to a device or pipe."""
    if path.exists() and not path.is_file():
        path.write_text(text, "utf-8")
        return
    draft = path.with_name(f".tmp-{uuid.uuid4().hex}")
    try:
        draft.write_text(text, "utf-8")
        with suppress(FileNotFoundError):
            shutil.copymode(path, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def section(picture: Picture, *, titled: bool = True) -> Markup:
    """Return a picture without the style, and without its heading if the page has its title."""
    digest = hashlib.blake2b(
        f"{type(picture).__name__}\0{picture.title}\0{picture.summary}".encode(
            "utf-8", "backslashreplace"
        ),
        digest_size=4,
    )
    ident = f"rs-{digest.hexdigest()}"
    heading = element("h2", text(picture.title), id=f"{ident}-title", dir="auto")
    return element(
        "section",
        heading if titled else NOTHING,
        element("p", text(picture.summary, 1_000), dir="auto"),
        picture.body(ident),
        class_="rowsieve-picture",
        aria_labelledby=f"{ident}-title" if titled else None,
        aria_label=None if titled else picture.title,
    )


def page(title: str, sections: Iterable[Markup], head: Markup = NOTHING) -> str:
    """Return a whole HTML page below its title; `head` is added to its head."""
    metadata = (
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", text(title)),
        element("style", Markup(STYLE)),
        head,
    )
    heading = element("h1", text(title), dir="auto")
    body = element("body", element("main", heading, *sections), class_="rowsieve-page")
    return f"<!DOCTYPE html>\n{element('html', element('head', *metadata), body, lang='en')}\n"
