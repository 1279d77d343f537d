"""A bucket that Rowsieve reads as S3 and Spark as a Hadoop file system, without a cloud.

Spark's Hadoop has no `s3a`: its overload scheme of viewfs answers for it, from the same folder.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_IMPL = "fs.s3a.impl"
_VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
_TARGET = "fs.viewfs.overload.scheme.target.file.impl"


def settings_of(bucket: str, folder: Path) -> dict[str, str]:
    """What a session needs to see the folder as a bucket."""
    return {
        _IMPL: _VIEW,
        _TARGET: "org.apache.hadoop.fs.LocalFileSystem",
        f"fs.viewfs.mounttable.{bucket}.linkFallback": folder.as_uri(),
    }


@contextmanager
def seen_by(spark: Any, bucket: str, folder: Path) -> Iterator[None]:
    """Let a session see the folder as this bucket, and forget it after the block."""
    settings = settings_of(bucket, folder)
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def fresh_bucket() -> str:
    """A name that no file system of the process was made for."""
    return f"b{uuid.uuid4().hex[:12]}"
