"""Asks the Hadoop file systems of a classic Spark session, in its JVM, and scans known files.

Many files are one call: what Java knows of them is joined to one text there, and what this process
knows of them arrives as one block of bytes. Functions of Java's classes are made in the JVM from
their names, because no call returns into this process.

These classes are internal to Spark and Hadoop: only this module and `plans` name them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructType

from rowsieve.bridges.spark_columns.java_classes import java_class
from rowsieve.errors import CorruptData
from rowsieve.providers.spark.plans import internal_class, some
from rowsieve.varints import encode_varint

_FS: Final = "org.apache.hadoop.fs."
_BETWEEN: Final = "\0"  # in no name of a file
_BLOCK_BYTES: Final = 128 * 1024 * 1024
_IGNORED: Final = "ignoredPathSegmentRegex"
_COUNT: Final = struct.Struct(">i")


def has_scheme(session: Any, scheme: str) -> bool:
    """Whether the session has a file system for URIs of the scheme; without one, its default."""
    if not scheme:
        return True
    try:
        _java(session, f"{_FS}FileSystem").getFileSystemClass(scheme, _settings(session))
    except Py4JJavaError:
        return False
    return True


def hadoop_version(session: Any) -> str:
    """The version of Hadoop that Spark has."""
    return str(_java(session, "org.apache.hadoop.util.VersionInfo").getVersion())


def tail_of(session: Any, uri: str, start: int) -> tuple[int, bytes]:
    """The length of a file, and its bytes from `start` on."""
    path = _java(session, f"{_FS}Path")(uri)
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
    path = _java(session, f"{_FS}Path")(folder)
    listed = path.getFileSystem(_settings(session)).listStatus(path)
    files = _java(session, "scala.Predef").genericWrapArray(listed)
    path_of, name_of, length_of = (
        _function(session, _getter(session, *names))
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
    session: Any, files: Mapping[str, int], schema: StructType, options: Mapping[str, str]
) -> Any:
    """The frame of Parquet files of known lengths, by their URIs; Spark asks for none of them.

    The files are the index's roots, so Spark, if it ever lists again, lists these alone.
    CorruptData if it has listed them, because it has no cache, and there are others.
    """
    statuses = _statuses(session, files)
    path_of = _getter(session, f"{_FS}FileStatus", "getPath")
    sources = "execution.datasources."
    cache = internal_class(session, f"{sources}FileStatusCache").getOrCreate(session._jsparkSession)
    statuses.foreach(_function(session, _keeping(session, cache, path_of)))
    option = _java(session, "scala.Option")
    columns = session._jsparkSession.parseDataType(schema.json()).asNullable()
    none = option.empty()
    usual = _java(session, "org.apache.spark.util.HadoopFSUtils")
    ignored = {_IGNORED: usual.DEFAULT_IGNORED_PATH_SEGMENT_REGEX()}  # another one needs a listing
    shared = internal_class(session, "catalyst.util.CaseInsensitiveMap")(
        _java(session, "org.apache.spark.api.python.PythonUtils").toScalaMap({**options, **ignored})
    )
    paths = statuses.map(_function(session, path_of))
    index = internal_class(session, f"{sources}InMemoryFileIndex")(
        session._jsparkSession, paths, shared, some(session, columns), cache, none, none
    )
    listed, wanted = int(index.allFiles().size()), (len(files), sum(files.values()))
    if (listed, int(index.sizeInBytes())) != wanted:
        raise CorruptData(
            f"Spark lists {listed:,} files of {index.sizeInBytes():,} bytes, and the manifest says "
            f"{wanted[0]:,} of {wanted[1]:,}; read with routes=['source']"
        )
    folders = session._jsparkSession.parseDataType(StructType([]).json())
    parquet = internal_class(session, f"{sources}parquet.ParquetFileFormat")()
    relation = internal_class(session, f"{sources}HadoopFsRelation")(
        index, folders, columns, none, parquet, shared, session._jsparkSession
    )
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - not on a Connect client

    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)


def _statuses(session: Any, files: Mapping[str, int]) -> Any:
    """A Scala sequence of the files, from the bytes in which Hadoop sends them to others."""
    messages = [_message(uri, size_bytes) for uri, size_bytes in files.items()]
    data = b"".join([_COUNT.pack(len(messages)), *messages])
    array = _java(session, "org.apache.hadoop.io.ArrayWritable")(
        _class(session, f"{_FS}FileStatus")
    )
    stream = _java(session, "java.io.ByteArrayInputStream")(data)
    array.readFields(_java(session, "java.io.DataInputStream")(stream))
    return _java(session, "scala.Predef").genericWrapArray(array.toArray()).toSeq()


def _message(uri: str, size_bytes: int) -> bytes:
    """`FileStatusProto` of a file: type, path, length, permission, replicas, size of a block."""
    name = uri.encode()
    fields = b"\x08\x02\x12" + encode_varint(len(name)) + name
    fields += b"\x18" + encode_varint(size_bytes) + b"\x22\x03\x08\xa4\x02\x50\x01"
    fields += b"\x58" + encode_varint(_BLOCK_BYTES)
    return _COUNT.pack(len(fields)) + fields


def _keeping(session: Any, cache: Any, path_of: Any) -> Any:
    """A method that puts a file's status into the cache, as the only leaf of its path."""
    handles = _java(session, "java.lang.invoke.MethodHandles")
    one, array = f"{_FS}FileStatus", f"[L{_FS}FileStatus;"
    put = (
        _lookup(session)
        .findVirtual(
            _class(session, "org.apache.spark.sql.execution.datasources.FileStatusCache"),
            "putLeafFiles",
            _type(session, "void", f"{_FS}Path", array),
        )
        .bindTo(cache)
    )
    gateway = session.sparkContext._gateway
    filters = gateway.new_array(_java(session, "java.lang.invoke.MethodHandle"), 2)
    filters[0] = path_of
    filters[1] = handles.identity(_class(session, array)).asCollector(_class(session, array), 1)
    both = handles.filterArguments(put, 0, filters)
    order = gateway.new_array(session._jvm.int, 2)  # both arguments are the first
    return handles.permuteArguments(both, _type(session, "void", one), order)


def _getter(session: Any, class_name: str, method: str) -> Any:
    """A method without arguments of a class of Hadoop."""
    owner = _class(session, class_name)
    nothing = session.sparkContext._gateway.new_array(session._jvm.Class, 0)
    return _lookup(session).unreflect(owner.getMethod(method, nothing))


def _function(session: Any, handle: Any) -> Any:
    """A function of Scala that calls the method."""
    proxies = _java(session, "java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(_class(session, "scala.Function1"), handle)


def _type(session: Any, returned: str, *arguments: str) -> Any:
    classes = _java(session, "java.util.ArrayList")()
    for name in arguments:
        classes.add(_class(session, name))
    result = _java(session, "java.lang.Void").TYPE if returned == "void" else returned
    return _java(session, "java.lang.invoke.MethodType").methodType(result, classes)


def _lookup(session: Any) -> Any:
    return _java(session, "java.lang.invoke.MethodHandles").publicLookup()


def _class(session: Any, name: str) -> Any:
    return _java(session, "java.lang.Class").forName(name)


def _java(session: Any, name: str) -> Any:
    return java_class(session._jvm, name)


def _settings(session: Any) -> Any:
    """The settings of the session for Hadoop, `spark.hadoop.*` and those set later included."""
    return session._jsparkSession.sessionState().newHadoopConf()
