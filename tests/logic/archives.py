"""Logic test files of another project: a folder, an archive, or the https address of an archive.

An archive (`.tar.gz`, `.tgz`, `.zip`) is unpacked into a folder of the caller's. Nothing is written
outside of that folder and nothing but regular files is: members with absolute names, with `..`,
links and devices raise ValueError, and so does an archive that unpacks to more than `MAX_BYTES`.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

SUFFIXES = (".slt", ".test")
MAX_BYTES = 4 << 30
_FETCH_TIMEOUT_S = 120
_TARS = (".tar.gz", ".tgz")


def is_archive(source: str) -> bool:
    """Whether the name is that of an archive; any other name is that of a folder."""
    return source.endswith((*_TARS, ".zip"))


def fetched(source: str, folder: Path) -> Path:
    """The archive as a local file: a path as it is, an https address downloaded into `folder`."""
    if "://" not in source:
        return Path(source)
    if not source.startswith("https://"):
        raise ValueError(f"logic tests are fetched by https only, not from {source!r}")
    target = folder / source.rsplit("/", 1)[1]
    with urllib.request.urlopen(source, timeout=_FETCH_TIMEOUT_S) as body:
        target.write_bytes(_at_most(body, MAX_BYTES))
    return target


def unpack(archive: Path, folder: Path) -> None:
    """Write the regular files of the archive below `folder`."""
    left = MAX_BYTES
    for name, size, body in _members(archive):
        left -= size
        if left < 0:
            raise ValueError(f"{archive} unpacks to more than {MAX_BYTES} bytes")
        target = folder / _safe(archive, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with body, target.open("xb") as written:
            shutil.copyfileobj(body, written)


def test_files(folder: Path) -> list[Path]:
    """The files of logic tests below a folder, sorted by path."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def _members(archive: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """The name, the unpacked size in bytes and the body of each file, in the archive's order."""
    return _of_zip(archive) if archive.name.endswith(".zip") else _of_tar(archive)


def _of_zip(archive: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(archive) as zipped:
        for member in zipped.infolist():
            if member.is_dir():
                continue
            mode = member.external_attr >> 16
            if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                raise ValueError(f"{archive}: {member.filename!r} is not a regular file")
            yield member.filename, member.file_size, zipped.open(member)


def _of_tar(archive: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            if member.isdir():
                continue
            if not member.isreg() or (body := tar.extractfile(member)) is None:
                raise ValueError(f"{archive}: {member.name!r} is not a regular file")
            yield member.name, member.size, body


def _safe(archive: Path, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise ValueError(f"{archive}: {name!r} is a name outside of the archive")
    return path


def _at_most(body: IO[bytes], size_bytes: int) -> bytes:
    read = body.read(size_bytes + 1)
    if len(read) > size_bytes:
        raise ValueError(f"the archive has more than {size_bytes} bytes")
    return read
