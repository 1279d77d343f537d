"""A disk whose power goes: what was not synced survives in any order, in part, or not at all.

`Journal` records the calls that write below a folder. `survivor` builds a folder as it may be after
a power cut at some call. The bytes of a file that were not synced are there up to a random place,
or are zeros; of those that replace synced ones, each sector is the old or the new one. A name that
was made or removed since the last sync of its folder is as it was before or as it is now, each by
itself.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Call(NamedTuple):
    """A call that writes: its name, the file or folder, and its other argument."""

    name: str
    path: str
    more: Any = None


@dataclass
class File:
    """A file's bytes: as they are, and as they were at its last sync."""

    data: bytes = b""
    synced: bytes = b""


@dataclass
class Folder:
    """Names in a folder: as they were at its last sync, and as they are."""

    synced: dict[str, object] = field(default_factory=dict)
    now: dict[str, object] = field(default_factory=dict)


class Journal:
    """Records the calls of `os` that write below a folder, which exists and is on the disk."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[Call] = []
        self._root = root
        self._begin = _read(root)
        self._real = {name: getattr(os, name) for name in ("open", *_RECORDED)}
        for name in _RECORDED:
            patch.setattr(os, name, self._recording(name))
        patch.setattr(os, "open", self._opening)

    def survivor(self, cut: int, draws: random.Random, target: Path) -> None:
        """Build a folder as it may be if the power goes before the call of that number."""
        top = _copied(self._begin)
        for call in self.calls[:cut]:
            _apply(top, call)
        target.mkdir()
        _write(top, draws, target)

    def _opening(self, path: Any, flags: int, *args: Any, **options: Any) -> int:
        found: int = self._real["open"](path, flags, *args, **options)
        if flags & os.O_CREAT:
            self._note("create", Path(os.fsdecode(path)))
        return found

    def _recording(self, name: str) -> Callable[..., Any]:
        def recorded(*args: Any, **options: Any) -> Any:
            place: Any = args[0]
            more: Any = None
            if isinstance(place, int):
                place = Path(f"/proc/self/fd/{place}").readlink()
            result = self._real[name](*args, **options)
            if name in ("link", "replace"):
                more = self._inside(Path(args[1]))
            elif name == "write":
                more = bytes(args[1])[:result]
            elif name == "pwrite":
                more = (bytes(args[1])[:result], args[2])
            elif name == "ftruncate":
                more = args[1]
            self._note(name, Path(place), more)
            return result

        return recorded

    def _note(self, name: str, path: Path, more: Any = None) -> None:
        if (inside := self._inside(path)) is not None:
            self.calls.append(Call(name, inside, more))

    def _inside(self, path: Path) -> str | None:
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else None


_RECORDED = ("fsync", "link", "unlink", "replace", "mkdir", "write", "pwrite", "ftruncate")
_SECTOR_BYTES = 512


def _read(root: Path) -> Folder:
    found: dict[str, object] = {}
    for child in root.iterdir():
        if child.is_dir():
            found[child.name] = _read(child)
        else:
            data = child.read_bytes()
            found[child.name] = File(data, data)
    return Folder(dict(found), found)


def _copied(folder: Folder) -> Folder:
    copies: dict[int, object] = {}

    def copy(node: object) -> object:
        if id(node) not in copies:
            if isinstance(node, File):
                copies[id(node)] = File(node.data, node.synced)
            else:
                assert isinstance(node, Folder)
                copies[id(node)] = _copied(node)
        return copies[id(node)]

    now = {name: copy(node) for name, node in folder.now.items()}
    return Folder({name: copy(node) for name, node in folder.synced.items()}, now)


def _apply(top: Folder, call: Call) -> None:
    parent, _, name = call.path.rpartition("/")
    folder = _node(top, parent)
    assert isinstance(folder, Folder)
    match call.name:
        case "create":
            folder.now[name] = File()
        case "mkdir":
            folder.now[name] = Folder()
        case "unlink":
            folder.now.pop(name)
        case "link" | "replace":
            place, _, new = call.more.rpartition("/")
            other = _node(top, place)
            assert isinstance(other, Folder)
            other.now[new] = folder.now[name]
            if call.name == "replace":
                folder.now.pop(name)
        case "write":
            file = folder.now[name]
            assert isinstance(file, File)
            file.data += call.more
        case "pwrite":
            file = folder.now[name]
            assert isinstance(file, File)
            data, offset = call.more
            before = file.data.ljust(offset, b"\0")
            file.data = before[:offset] + data + before[offset + len(data) :]
        case "ftruncate":
            file = folder.now[name]
            assert isinstance(file, File)
            file.data = file.data[: call.more].ljust(call.more, b"\0")
        case "fsync":
            _sync(_node(top, "" if call.path == "." else call.path))


def _node(top: Folder, path: str) -> object:
    node: object = top
    for name in filter(None, path.split("/")):
        assert isinstance(node, Folder)
        node = node.now[name]
    return node


def _sync(node: object) -> None:
    if isinstance(node, Folder):
        node.synced = dict(node.now)
    elif isinstance(node, File):
        node.synced = node.data


def _write(folder: Folder, draws: random.Random, target: Path) -> None:
    for name in sorted({*folder.synced, *folder.now}):
        before, after = folder.synced.get(name), folder.now.get(name)
        node = after if before is after or draws.random() < 0.5 else before
        if isinstance(node, Folder):
            (target / name).mkdir()
            _write(node, draws, target / name)
        elif isinstance(node, File):
            (target / name).write_bytes(_surviving(node, draws))


def _surviving(file: File, draws: random.Random) -> bytes:
    """The synced bytes, sectors of later ones in their place, and a part of what follows."""
    old, new = file.synced, file.data
    if len(new) < len(old):  # it was cut since
        return new if draws.random() < 0.5 else old
    both = bytearray(old)
    for start in range(0, len(old), _SECTOR_BYTES):
        sector = slice(start, min(start + _SECTOR_BYTES, len(old)))
        if new[sector] != old[sector] and draws.random() < 0.5:
            both[sector] = new[sector]
    rest = len(new) - len(old)
    if draws.random() < 0.3:
        return bytes(both) + bytes(rest)
    return bytes(both) + new[len(old) : len(old) + draws.randint(0, rest)]
