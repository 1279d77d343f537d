"""Finds out whether a Spark session itself can read the files of a table.

On the local disk it can. Elsewhere the session opens one file of the version by the name that its
Hadoop has for the store, and lists the folder of data files: the end of the file must have the
checksum of the manifest, and each file of the read must have its size there. This happens once for
each session and table, and again for files that are new.

Soundness: Spark reads files itself only where this succeeded, so not in another store that has the
same names. What it cannot open, our source reads. Credentials are the session's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError

from rowsieve import clock
from rowsieve.checksums import checksum
from rowsieve.objects import Location, table_uri_of
from rowsieve.objects.storage_options import flat_options, secrets_of
from rowsieve.providers.spark.jvm.hadoop import hadoop_version, has_scheme, listed_sizes, tail_of
from rowsieve.providers.spark.reads.hadoop_places import (
    PROPERTY,
    HadoopPlace,
    given_place,
    places_of,
)
from rowsieve.storage.manifests.manifest import FileRef

_T = TypeVar("_T")
_LONGEST_S: Final = 30.0  # a file system that answers later is not used
_FAILED_S: Final = 60.0  # so long a failure is not tried again
_MAX_REMEMBERED_TABLES: Final = 1_000
_LONGEST_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class Access:
    """How a session reads the files: from `root`, or not, because of `problem`."""

    root: str = ""
    problem: str = ""


@dataclass(slots=True)
class _Known:
    """What a session was seen to read at a place: sizes of files by name, or the last failure."""

    sizes: Mapping[str, int]
    problem: str = ""
    failed_at: float = 0.0


_SEEN: Final[dict[tuple[str, str, str], _Known]] = {}
"""By session, table and place."""


def access_of(session: Any, table: Any, spark_path: str | None, files: Sequence[FileRef]) -> Access:
    """How this session reads these files of a table; `spark_path` is the argument `spark_path`."""
    location = Location.parse(table_uri_of(table.uri))
    options = flat_options(table.handle.storage_options)
    snapshot = table.handle.pinned
    named = spark_path or snapshot.table.properties.get(PROPERTY)
    if not named and location.scheme == "file":
        return Access(places_of(location, options)[0].root)
    places = [given_place(named)] if named else places_of(location, options)
    if not places:
        return Access(
            problem=f"{location.scheme}:// does not name the account: give the table property "
            f"{PROPERTY}, abfss://container@account.dfs.core.windows.net/…"
        )
    place = next((each for each in places if has_scheme(session, each.scheme)), None)
    if place is None:
        return Access(problem=_missing(session, places[0]))
    problem = _problem(session, snapshot.table.uuid, place, files)
    for secret in secrets_of(options):
        problem = problem.replace(secret, "…")
    return Access(problem=problem) if problem else Access(place.root)


def _missing(session: Any, place: HadoopPlace) -> str:
    """What a session lacks that has no file system for the scheme."""
    package = f"add the package {place.package} " if place.package else "add its package "
    return (
        f"it has no file system for {place.scheme}://, {package}of Hadoop "
        f"{hadoop_version(session)} by spark.jars.packages, or set "
        f"spark.hadoop.fs.{place.scheme}.impl"
    )


def _problem(session: Any, uuid: str, place: HadoopPlace, files: Sequence[FileRef]) -> str:
    """Why the session cannot read these files at the place; empty if it can."""
    key = str(session._jsparkSession.sessionUUID()), uuid, place.root
    known = _SEEN.get(key)
    if known is not None and known.problem and clock.monotonic_s() - known.failed_at < _FAILED_S:
        return known.problem
    if known is not None and all(known.sizes.get(file.path) == file.size_bytes for file in files):
        return ""
    try:
        sizes, problem = _in_time(lambda: _looked_up(session, place, files))
    except Py4JError as error:
        problem, sizes = _hadoop_error(place, error), {}
    except TimeoutError:
        problem, sizes = f"{place.root} did not answer within {_LONGEST_S:.0f} s", {}
    if len(_SEEN) >= _MAX_REMEMBERED_TABLES:
        _SEEN.clear()
    _SEEN[key] = _Known(sizes, problem, clock.monotonic_s())
    return problem


def _looked_up(
    session: Any, place: HadoopPlace, files: Sequence[FileRef]
) -> tuple[dict[str, int], str]:
    """The sizes that Spark finds by the names of files, and what differs from the manifest."""
    if not files:
        return {}, ""
    first = min(files, key=lambda file: file.size_bytes - file.tail_start)
    whole = f"{place.root}/{first.path}"
    size_bytes, tail = tail_of(session, whole, first.tail_start)
    if size_bytes != first.size_bytes or checksum(tail) != first.tail_checksum:
        return {}, (
            f"{whole} is another file there: it has {size_bytes:,} bytes, and the manifest says "
            f"{first.size_bytes:,} with another footer"
        )
    sizes = {first.path: size_bytes}
    for folder in sorted({file.path.rpartition("/")[0] for file in files}):
        listed = listed_sizes(session, f"{place.root}/{folder}")
        sizes |= {f"{folder}/{name}": size for name, size in listed.items()}
    for file in files:
        if sizes.get(file.path) != file.size_bytes:
            there = sizes.get(file.path)
            what = "is missing" if there is None else f"has {there:,} bytes"
            return {}, f"{place.root}/{file.path} {what}, of {file.size_bytes:,} bytes"
    return {file.path: file.size_bytes for file in files}, ""


def _hadoop_error(place: HadoopPlace, error: Py4JError) -> str:
    """Hadoop's error in one line, and the settings that may be missing."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        text = f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"
    line = text.partition("\n")[0][:_LONGEST_TEXT]
    hint = f"; its settings begin with spark.hadoop.{place.settings}" if place.settings else ""
    return f"{place.root} cannot be opened: {line}{hint}"


def _in_time(work: Callable[[], _T]) -> _T:
    """The result of work in a thread; TimeoutError if it takes too long."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="rowsieve-spark-access", daemon=True)
    thread.start()
    thread.join(_LONGEST_S)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
