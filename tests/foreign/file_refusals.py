"""Refusals of files of other writers, each with what its message advises."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    NotFound,
    SchemaMismatch,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.parquet.thrift import I32, encoded_value
from tests.foreign import damaged
from tests.foreign.refusals import Refusal


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def twice(folder: Path) -> list[Path]:
    path = write(folder / "a.parquet", v=[1])
    return [path, path]


def linked(folder: Path) -> Path:
    write(folder / "x" / "year=2024" / "a.parquet", v=[1])
    (folder / "x" / "year=2025").mkdir()
    (folder / "x" / "year=2025" / "a.parquet").symlink_to("../year=2024/a.parquet")
    return folder / "x"


def without_link(folder: Path) -> Path:
    (folder / "x" / "year=2025" / "a.parquet").unlink()
    return folder / "x"


def in_folders(folder: Path, *names: str) -> list[Path]:
    return [
        write(folder / name / f"{place}.parquet", v=[place + 1]) for place, name in enumerate(names)
    ]


def below(folder: Path, *names: str) -> Path:
    in_folders(folder, *names)
    return folder


def renamed(folder: Path) -> Path:
    (folder / "y=1" / "y=2").rename(folder / "y=1" / "z=2")
    return folder / "y=1"


def with_float_key(folder: Path) -> Path:
    return write(folder / "a.parquet", v=[1.5])


def with_codec(folder: Path, number: int) -> Path:
    path = write(folder / "a.parquet", v=[1])
    damaged.edit_metadata(
        path, lambda _, __, metadata: metadata.update({4: encoded_value(I32(number))})
    )
    return path


def written_again(folder: Path) -> Path:
    pq.write_table(pa.table({"v": [1]}), folder / "a.parquet", compression="zstd")
    return folder / "a.parquet"


def with_columns(folder: Path, names: list[str], *columns: Any) -> Path:
    arrays = [each if isinstance(each, pa.Array) else pa.array(each) for each in columns]
    pq.write_table(pa.table(arrays, names=names), folder / "a.parquet", store_schema=False)
    return folder / "a.parquet"


def deep(levels: int) -> pa.Array:
    """A value in so many lists."""
    values = pa.array([1])
    for _ in range(levels):
        values = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), values)
    return values


def not_parquet(folder: Path, data: bytes) -> Path:
    (folder / "b.parquet").write_bytes(data)
    return write(folder / "a.parquet", v=[1]).parent


def without_b(folder: Path) -> Path:
    (folder / "b.parquet").unlink()
    return folder


def piped(folder: Path) -> Path:
    os.mkfifo(folder / "a.parquet")
    return folder / "a.parquet"


def saved(folder: Path) -> Path:
    (folder / "a.parquet").unlink()
    return write(folder / "a.parquet", v=[1])


def named_dat(folder: Path) -> Path:
    write(folder / "a.parquet", v=[1]).rename(folder / "a.dat")
    return folder


def named_parquet(folder: Path) -> Path:
    (folder / "a.dat").rename(folder / "a.parquet")
    return folder


def tagged(folder: Path) -> rs.Table:
    schema = pq.read_schema(folder / "a.parquet")
    table = rs.create_table(folder / "u", schema, properties={"column_names": "tag"})
    table.append(folder / "a.parquet")
    return table


V: Any = pa.schema({"v": pa.int64()})


OF_FILES = {
    "a zero byte in a name": Refusal(
        SchemaMismatch, "name the other columns in schema=",
        lambda f: rs.open_parquet(with_columns(f, ["a\0b", "v"], [1], [2])),
        lambda f: rs.open_parquet(f / "a.parquet", schema=V),
    ),
    "a zero byte in a name, renamed": Refusal(
        SchemaMismatch, "rename the column",
        lambda f: rs.open_parquet(with_columns(f, ["a\0b", "v"], [1], [2])),
        lambda f: rs.open_parquet(with_columns(f, ["ab", "v"], [1], [2])),
    ),
    "a column that is nested too deep": Refusal(
        SchemaMismatch, "name the other columns in schema=",
        lambda f: rs.open_parquet(with_columns(f, ["a", "v"], deep(49), [2])),
        lambda f: rs.open_parquet(f / "a.parquet", schema=V),
    ),
    "two columns of one name": Refusal(
        InvalidInput, "rename them",
        lambda f: rs.open_parquet(with_columns(f, ["v", "v"], [1], [2])),
        lambda f: rs.open_parquet(with_columns(f, ["v", "w"], [1], [2])),
    ),
    "bytes that are no text": Refusal(
        SchemaMismatch, "choose another type in schema=",
        lambda f: rs.open_parquet(
            with_columns(f, ["v", "s"], [1], [b"\xff"]), binary_as_string=True
        ).to_arrow(),
        lambda f: rs.open_parquet(
            f / "a.parquet", schema=pa.schema({"v": pa.int64(), "s": pa.binary()})
        ),
    ),
    "bytes that are no text, left out": Refusal(
        SchemaMismatch, "or leave the column out",
        lambda f: rs.open_parquet(
            with_columns(f, ["v", "s"], [1], [b"\xff"]), binary_as_string=True
        ).to_arrow(),
        lambda f: rs.open_parquet(f / "a.parquet", schema=V),
    ),
    "types that no type holds": Refusal(
        SchemaMismatch, "or give the type in schema=",
        lambda f: rs.open_parquet(
            [write(f / "a.parquet", v=[1]), write(f / "b.parquet", v=["2"])]
        ),
        lambda f: rs.open_parquet(f / "a.parquet", schema=V),
    ),
    "a file that is not Parquet": Refusal(
        InvalidInput, "leave it out", lambda f: rs.open_parquet(not_parquet(f, b"not at all" * 9)),
        lambda f: rs.open_parquet(without_b(f)),
    ),
    "a file that is too short": Refusal(
        InvalidInput, "leave it out", lambda f: rs.open_parquet(not_parquet(f, b"PAR1")),
        lambda f: rs.open_parquet(without_b(f)),
    ),
    "another version than the only one": Refusal(
        VersionNotFound, "leave version= out",
        lambda f: rs.open_parquet(write(f / "a.parquet", v=[1])).scan(version=3).to_arrow(),
        lambda f: rs.open_parquet(f / "a.parquet"),
    ),
    "a file twice": Refusal(
        InvalidInput, "Give it once", lambda f: rs.open_parquet(twice(f)),
        lambda f: rs.open_parquet(f / "a.parquet"),
    ),
    "a link": Refusal(
        InvalidInput, "remove the symbolic link", lambda f: rs.open_parquet(linked(f)),
        lambda f: rs.open_parquet(without_link(f)),
    ),
    "other directories": Refusal(
        InvalidInput, "give files with the same",
        lambda f: rs.open_parquet(below(f, "y=1", "z=1")),
        lambda f: rs.open_parquet(f / "y=1" / "0.parquet"),
    ),
    "other directories, not read": Refusal(
        InvalidInput, "or hive=False", lambda f: rs.open_parquet(below(f, "y=1", "z=1")),
        lambda f: rs.open_parquet(below(f, "y=1", "z=1"), hive=False),
    ),
    "no directories": Refusal(
        InvalidInput, "leave hive= out",
        lambda f: rs.open_parquet(write(f / "a.parquet", v=[1]), hive=True),
        lambda f: rs.open_parquet(f / "a.parquet"),
    ),
    "a directory of another type": Refusal(
        InvalidInput, r"right type in hive=\{'y'",
        lambda f: rs.open_parquet(in_folders(f, "y=one"), hive={"y": "int64"}),
        lambda f: rs.open_parquet(in_folders(f, "y=one"), hive={"y": "string"}),
    ),
    "a column with two directories": Refusal(
        InvalidInput, "rename one of them",
        lambda f: rs.open_parquet(in_folders(f, "y=1/y=2")[0].parent.parent.parent),
        lambda f: rs.open_parquet(renamed(f).parent),
    ),
    "a column that no file has": Refusal(
        SchemaMismatch, "remove it from schema=",
        lambda f: rs.open_parquet(
            write(f / "a.parquet", v=[1]), schema=pa.schema({"v": pa.int64(), "w": pa.int64()})
        ),
        lambda f: rs.open_parquet(f / "a.parquet", schema=pa.schema({"v": pa.int64()})),
    ),
    "files in the folder of the table": Refusal(
        InvalidInput, "move one of them",
        lambda f: rs.from_parquet(write(f / "t" / "a.parquet", v=[1]), f / "t"),
        lambda f: rs.from_parquet(shutil.move(f / "t" / "a.parquet", f / "a.parquet"), f / "u"),
    ),
    "a float key": Refusal(
        UnsupportedOperation, "copy the rows into a table with a key",
        lambda f: rs.from_parquet(with_float_key(f), f / "t", key=["v"]),
        lambda f: rs.create_table(f / "u", pq.read_table(f / "a.parquet"), key=["v"]),
    ),
    "a file that does not exist": Refusal(
        NotFound, "give a file or directory that does",
        lambda f: rs.open_parquet(f / "a.parquet"),
        lambda f: rs.open_parquet(write(f / "a.parquet", v=[1])),
    ),
    "a pipe": Refusal(
        InvalidInput, "save them in a file", lambda f: rs.open_parquet(piped(f)),
        lambda f: rs.open_parquet(saved(f)),
    ),
    "files without their suffix": Refusal(
        NotFound, "files are named .parquet", lambda f: rs.open_parquet(named_dat(f)),
        lambda f: rs.open_parquet(named_parquet(f)),
    ),
    "a glob that matches none": Refusal(
        NotFound, "files are named .parquet",
        lambda f: rs.open_parquet(str(named_dat(f) / "*")),
        lambda f: rs.open_parquet(str(named_parquet(f) / "*")),
    ),
    "names of columns by tag": Refusal(
        InvalidInput, "use create_table with this property, and append the rows",
        lambda f: rs.from_parquet(
            write(f / "a.parquet", v=[1]), f / "t", properties={"column_names": "tag"}
        ),
        tagged,
    ),
    "a codec that nobody knows": Refusal(
        UnsupportedOperation, "write the file again with zstd",
        lambda f: rs.open_parquet(with_codec(f, 99)), lambda f: rs.open_parquet(written_again(f)),
    ),
}  # fmt: skip
