"""Finds the Parquet files of a path, a directory, a glob or a list of these.

In a directory and a glob, names that begin with `.` or `_` are skipped, as other engines do (a
directory `_day=1` is not), and so are files that are not named `*.parquet`, `*.pq` or `*.parq`.
Soundness: a path that does not exist, a directory without files, and the directory of a table of
another format are errors, never an empty relation. A file is identified by its path with symbolic
links resolved, so that a file with two names does not count twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rowsieve.errors import InvalidInput, NotFound, StoreError, UnsupportedOperation
from rowsieve.objects import Location, ObjectStore, open_store
from rowsieve.objects.globs import glob_expression, has_wildcard, split_glob

SUFFIXES: Final = (".parquet", ".pq", ".parq")
_FORMATS: Final = {
    "_rowsieve": "a Rowsieve table: open it with open_table",
    "_delta_log": "a Delta table, whose files may hold rows that were deleted: use from_delta",
}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file: its location, and its path below the folder that was given (`folders` and name).

    The location has no symbolic links; `path` is the whole path that led to the file.
    """

    location: Location
    below: str
    path: str

    @property
    def uri(self) -> str:
        """The file's URI, which object stores read."""
        return self.location.uri


def find_files(source: Any, storage_options: Mapping[str, Any] | None) -> list[FoundFile]:
    """Return the files of `source`, sorted by path; InvalidInput for a file given twice."""
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not sources:
        raise InvalidInput("no path was given: give a file, a directory, a glob or a list of these")
    files = [
        file for each in sources for file in _without_repeats(_files_of(each, storage_options))
    ]
    files.sort(key=lambda file: file.location.path)
    for one, other in pairwise(files):
        if one.location == other.location:
            raise InvalidInput(
                f"the file {one.uri} was given twice; its rows would count twice. Give it once"
            )
    buckets = {(file.location.scheme, file.location.authority) for file in files}
    if len(buckets) > 1:
        raise InvalidInput(
            "the files lie in several stores; files that are read together lie on the local disk, "
            "or in one bucket"
        )
    return files


def _without_repeats(files: Iterator[FoundFile]) -> Iterator[FoundFile]:
    """Keep each file once, preferably under its own name; InvalidInput if its folders differ."""
    by_location: dict[Location, FoundFile] = {}
    for file in files:
        known = by_location.setdefault(file.location, file)
        if _constants(known) != _constants(file):
            raise InvalidInput(
                f"the file {file.uri} was found as {known.below!r} and as {file.below!r}, where "
                "its rows would count twice; remove the symbolic link"
            )
        if file.path == file.location.path:
            by_location[file.location] = file
    yield from by_location.values()


def _constants(file: FoundFile) -> list[str]:
    """The folders that may be constant columns."""
    return [folder for folder in file.below.split("/")[:-1] if "=" in folder]


def root_of(files: Sequence[FoundFile]) -> Location:
    """Return the deepest folder that has all the files."""
    folders = [file.location.path.rpartition("/")[0] for file in files]
    first = files[0].location
    path = os.path.commonpath([f"/{folder.lstrip('/')}" for folder in folders])
    return Location(first.scheme, first.authority, path if first.scheme == "file" else path[1:])


def _files_of(source: Any, storage_options: Mapping[str, Any] | None) -> Iterator[FoundFile]:
    text = os.fspath(source)
    if not isinstance(text, str):
        raise InvalidInput(f"a path is text, not the {type(text).__name__} {text!r}")
    if has_wildcard(text) and ("://" in text or not os.path.lexists(text)):
        yield from _matching(text, storage_options)
        return
    location = Location.parse(source)
    if location.scheme == "memory":
        raise InvalidInput(
            "memory:// holds tables only; Parquet files lie on a disk or in a bucket"
        )
    if location.scheme == "file":
        if os.path.isfile(location.path):  # noqa: PTH113 - False for a name that no file can have
            yield FoundFile(location, location.name, location.path)
        elif os.path.isdir(location.path):  # noqa: PTH112
            yield from _non_empty(location, _in_folder(location))
        elif os.path.exists(location.path):  # noqa: PTH110
            raise InvalidInput(
                f"{location.uri} is neither a regular file nor a directory; rows of a pipe or a "
                "device can be read once only: save them in a file"
            )
        else:
            raise NotFound(f"{location.uri} does not exist; give a file or directory that does")
    elif location.name.endswith(SUFFIXES):
        yield FoundFile(location, location.name, location.path)
    else:
        yield from _non_empty(location, _in_bucket(location, storage_options))


def _matching(pattern: str, storage_options: Mapping[str, Any] | None) -> Iterator[FoundFile]:
    """The files that match a glob: `*` and `?` within a name, `**` for any folders."""
    fixed, rest = split_glob(pattern)
    base = Location.parse(fixed or ("/" if pattern.startswith("/") else "."))
    if base.scheme == "file":
        is_folder = os.path.isdir(base.path)  # noqa: PTH112 - False for a name that cannot be
        depth = None if "**" in rest else rest.count("/")
        files = _in_folder(base, depth) if is_folder else iter(())
    else:
        files = _in_bucket(base, storage_options)
    wanted = glob_expression(rest)
    chosen = [file for file in files if wanted.fullmatch(file.below)]
    if not chosen:
        raise NotFound(
            f"no Parquet file matches {pattern!r}; files are named {', '.join(SUFFIXES)}, and "
            "names that begin with '_' or '.' are skipped"
        )
    yield from chosen


def _non_empty(location: Location, files: Iterator[FoundFile]) -> Iterator[FoundFile]:
    first = next(files, None)
    if first is None:
        raise NotFound(
            f"{location.uri} has no Parquet file; files are named {', '.join(SUFFIXES)}, and names "
            "that begin with '_' or '.' are skipped"
        )
    yield first
    yield from files


def _in_folder(folder: Location, depth: int | None = None) -> Iterator[FoundFile]:
    """The files below a local folder; symbolic links are followed, once each.

    `depth`: how many folders down to go; None for all of them.
    """
    seen: set[str] = set()
    for path, folders, names in os.walk(folder.path, onerror=_refuse, followlinks=True):
        _check_format(folder, path, folders)
        below = os.path.relpath(path, folder.path)
        if depth is not None and (0 if below == "." else below.count("/") + 1) >= depth:
            folders.clear()
        real = os.path.realpath(path)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            if _is_parquet(name):
                here = name if below == "." else f"{below}/{name}"
                place = f"{real.rstrip('/')}/{name}"
                if os.path.islink(place):  # noqa: PTH114 - names may be any bytes
                    place = os.path.realpath(place)
                yield FoundFile(Location("file", "", place), here, f"{path}/{name}")


def _refuse(error: OSError) -> None:
    """Raise StoreError: skipping a folder would lose rows."""
    raise StoreError(
        f"cannot list {error.filename}: {error.strerror}; its files would be missing. Allow "
        "reading the folder, or give other paths"
    ) from error


def _in_bucket(folder: Location, storage_options: Mapping[str, Any] | None) -> Iterator[FoundFile]:
    store: ObjectStore = open_store(folder.uri, storage_options)
    for path in store.list(""):
        folders, _, name = path.rpartition("/")
        _check_format(folder, folder.path, folders.split("/"))
        if _is_parquet(name) and not any(map(_is_hidden, folders.split("/"))):
            location = Location(folder.scheme, folder.authority, f"{folder.path}/{path}".strip("/"))
            yield FoundFile(location, path, location.path)


def _check_format(folder: Location, path: str, names: Sequence[str]) -> None:
    for name, advice in _FORMATS.items():
        if name in names:
            raise UnsupportedOperation(f"{folder.uri}: {path} is {advice}")


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and "=" not in name


def _is_parquet(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.startswith((".", "_"))


def literal_location(path: str) -> Location:
    """The location of a path in Iceberg's metadata, which is literal, never decoded."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return Location.local(path.removeprefix("file:"))
    if scheme == "file":
        return Location.local(f"/{rest.partition('/')[2]}")
    authority, _, key = rest.partition("/")
    return Location(scheme, authority, key.strip("/"))
