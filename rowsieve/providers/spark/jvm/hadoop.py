"""Asks the Hadoop file systems of a classic Spark session, in its JVM, and scans known files.

Many files are one call: what Java knows of them is joined to one text there, and what this process
knows of them arrives as one block of bytes.

These classes are internal to Spark and Hadoop: only this module, `file_index` and `plans` name
them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import LongType, StructField, StructType

from rowsieve.providers.spark.jvm.file_index import fixed_index
from rowsieve.providers.spark.jvm.method_handles import class_named, function, getter, java
from rowsieve.providers.spark.plans import internal_class
from rowsieve.varints import encode_varint

_FS: Final = "org.apache.hadoop.fs."
_BETWEEN: Final = "\0"  # in no name of a file
_BLOCK_BYTES: Final = 128 * 1024 * 1024
_COUNT: Final = struct.Struct(">i")


def has_scheme(session: Any, scheme: str) -> bool:
    """Whether the session has a file system for URIs of the scheme; without one, its default."""
    if not scheme:
        return True
    try:
        java(session, f"{_FS}FileSystem").getFileSystemClass(scheme, _settings(session))
    except Py4JJavaError:
        return False
    return True


def hadoop_version(session: Any) -> str:
    """The version of Hadoop that Spark has."""
    return str(java(session, "org.apache.hadoop.util.VersionInfo").getVersion())


def tail_of(session: Any, uri: str, start: int) -> tuple[int, bytes]:
    """The length of a file, and its bytes from `start` on."""
    path = java(session, f"{_FS}Path")(uri)
    system = path.getFileSystem(_settings(session))
    size_bytes = int(system.getFileStatus(path).getLen())
    stream = system.open(path)
    try:
        stream.seek(min(start, size_bytes))
        return size_bytes, bytes(stream.readNBytes(max(0, size_bytes - start)))
    finally:
        stream.close()


def listed_sizes(session: Any, folder: str) -> dict[str, int]:
    """The lengths of the files in a folder, by name."""
    path = java(session, f"{_FS}Path")(folder)
    listed = path.getFileSystem(_settings(session)).listStatus(path)
    files = java(session, "scala.Predef").genericWrapArray(listed)
    path_of, name_of, length_of = (
        function(session, getter(session, *names))
        for names in (
            (f"{_FS}FileStatus", "getPath"),
            (f"{_FS}Path", "getName"),
            (f"{_FS}FileStatus", "getLen"),
        )
    )
    names = files.map(path_of).map(name_of).mkString(_BETWEEN)
    lengths = files.map(length_of).mkString(_BETWEEN)
    if not names:
        return {}
    return dict(zip(names.split(_BETWEEN), map(int, lengths.split(_BETWEEN)), strict=True))


def scan_of_known_files(
    session: Any,
    files: Mapping[str, int],
    schema: StructType,
    options: Mapping[str, str],
    constants: Mapping[str, Sequence[int]],
) -> Any:
    """The frame of Parquet files of known lengths, by their URIs; Spark lists none of them.

    It has the columns of the schema, and those of `constants`: bigints with one value for each
    file, in the order of the files.
    """
    columns, folders = (
        session._jsparkSession.parseDataType(each.json()).asNullable()
        for each in (schema, StructType([StructField(name, LongType()) for name in constants]))
    )
    index = fixed_index(session, _statuses(session, files), files, folders, constants)
    shared = internal_class(session, "catalyst.util.CaseInsensitiveMap")(
        java(session, "org.apache.spark.api.python.PythonUtils").toScalaMap(dict(options))
    )
    sources = "execution.datasources."
    parquet = internal_class(session, f"{sources}parquet.ParquetFileFormat")()
    none = java(session, "scala.Option").empty()
    relation = internal_class(session, f"{sources}HadoopFsRelation")(
        index, folders, columns, none, parquet, shared, session._jsparkSession
    )
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - not on a Connect client

    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)


def _statuses(session: Any, files: Mapping[str, int]) -> Any:
    """A Scala sequence of the files, from the bytes in which Hadoop sends them to others."""
    messages = [_message(uri, size_bytes) for uri, size_bytes in files.items()]
    data = b"".join([_COUNT.pack(len(messages)), *messages])
    array = java(session, "org.apache.hadoop.io.ArrayWritable")(
        class_named(session, f"{_FS}FileStatus")
    )
    stream = java(session, "java.io.ByteArrayInputStream")(data)
    array.readFields(java(session, "java.io.DataInputStream")(stream))
    return java(session, "scala.Predef").genericWrapArray(array.toArray()).toSeq()


def _message(uri: str, size_bytes: int) -> bytes:
    """`FileStatusProto` of a file: type, path, length, permission, replicas, size of a block."""
    name = uri.encode()
    fields = b"\x08\x02\x12" + encode_varint(len(name)) + name
    fields += b"\x18" + encode_varint(size_bytes) + b"\x22\x03\x08\xa4\x02\x50\x01"
    fields += b"\x58" + encode_varint(_BLOCK_BYTES)
    return _COUNT.pack(len(fields)) + fields


def _settings(session: Any) -> Any:
    """The settings of the session for Hadoop, `spark.hadoop.*` and those set later included."""
    return session._jsparkSession.sessionState().newHadoopConf()
