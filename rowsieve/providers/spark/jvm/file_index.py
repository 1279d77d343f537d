"""An index of known files for a scan of Spark's, made in the JVM of a classic session.

Spark asks the index of a scan for its files. This one has a fixed answer to each question: nothing
is listed, and files may have constants, which Spark reads as partition columns. An index of Spark's
own takes such columns from the names of folders, which have one value for all their files.

Soundness: an index ignores the conditions that Spark passes. Spark evaluates them on the rows, but
not those that read constants alone: it takes them as applied (`FileSourceStrategy`). So no frame
shows a constant by itself; `IS NOT NULL`, which Spark infers for one, is TRUE for every file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rowsieve.providers.spark.jvm import method_handles as handles
from rowsieve.providers.spark.jvm.method_handles import METHOD, OBJECT, OBJECTS, STRING, java
from rowsieve.providers.spark.plans import UnknownInternals, internal_class, sequence

_FS: Final = "org.apache.hadoop.fs."
_INTERFACE: Final = "org.apache.spark.sql.execution.datasources.FileIndex"
_NOTHING: Final = frozenset({"refresh"})  # its method returns nothing: files never change
_HASH_BITS: Final = 31


def fixed_index(
    session: Any,
    statuses: Any,
    files: Mapping[str, int],
    schema: Any,
    constants: Mapping[str, Sequence[int]],
) -> Any:
    """The index of a Scala sequence of `FileStatus`, in the order of `files`.

    `files`: URIs with their lengths.
    `constants`: a bigint of each file by the columns of the partition schema. Two indexes are equal
    if their files, lengths and constants are.
    """
    content = f"{dict(files)} {dict(constants)}".encode()
    name = f"KnownFiles({len(files)} files, {hashlib.sha256(content).hexdigest()})"
    path_of, uri_of, text_of = (
        handles.function(session, handles.getter(session, *method))
        for method in (
            (f"{_FS}FileStatus", "getPath"),
            (f"{_FS}Path", "toUri"),
            ("java.net.URI", "toString"),
        )
    )
    paths = statuses.map(path_of)
    uris = paths.map(uri_of).map(text_of)
    answers = java(session, "java.util.HashMap")()
    for method, answer in {
        "rootPaths": paths,
        "listFiles": _directories(session, statuses, schema, constants),
        "inputFiles": uris.toArray(_of_class(session, STRING)),
        "partitionSchema": schema,
        "isTimeTravel": False,
        "metadataOpsTimeNs": java(session, "scala.Option").empty(),
        "toString": name,
        "hashCode": int.from_bytes(hashlib.sha256(content).digest()[:4]) % 2**_HASH_BITS,
    }.items():
        answers.put(method, answer)
    size = handles.ignoring(session, handles.constant_long(session, sum(files.values())), 0, OBJECT)
    answers.computeIfAbsent(
        "sizeInBytes", handles.instance(session, "java.util.function.Function", size)
    )
    return _index(session, answers, name)


def _directories(
    session: Any, statuses: Any, schema: Any, constants: Mapping[str, Sequence[int]]
) -> Any:
    """A Scala sequence of Spark's `PartitionDirectory`: one for each file, or one for all."""
    directory, row_of = (
        internal_class(session, name)
        for name in (
            "execution.datasources.PartitionDirectory",
            "catalyst.expressions.SpecificInternalRow",
        )
    )
    status = _of_class(session, f"{_FS}FileStatus")
    if not constants:
        return sequence(session, [directory.apply(row_of(schema), statuses.toArray(status))])
    directories = []
    for place, values in enumerate(zip(*constants.values(), strict=True)):
        row = row_of(schema)
        for column, value in enumerate(values):
            row.setLong(column, value)
        file = statuses.slice(place, place + 1).toArray(status)
        directories.append(directory.apply(row, file))
    return sequence(session, directories)


def _of_class(session: Any, name: str) -> Any:
    """Scala's tag of a class, for arrays of it."""
    return java(session, "scala.reflect.ClassTag").apply(handles.class_named(session, name))


def _index(session: Any, answers: Any, name: str) -> Any:
    """An instance of Spark's interface that answers by the names of its methods."""
    interface = handles.class_named(session, _INTERFACE)
    methods = {str(method.getName()) for method in interface.getMethods()}
    unknown = {each for each in methods if not each.endswith("$")} - _NOTHING  # `$`: Scala's own
    unknown = {each for each in unknown if not answers.containsKey(each)}
    if unknown:
        raise UnknownInternals(f"Spark {session.version} asks an index for {sorted(unknown)}")
    interfaces = session.sparkContext._gateway.new_array(session._jvm.Class, 1)
    interfaces[0] = interface
    return java(session, "java.lang.reflect.Proxy").newProxyInstance(
        interface.getClassLoader(), interfaces, _handler(session, answers, name)
    )


def _handler(session: Any, answers: Any, name: str) -> Any:
    """An `InvocationHandler`: it gets the index, the method and its arguments."""
    name_of = handles.getter(session, METHOD, "getName")
    answer = handles.bound(session, answers, "java.util.HashMap", "get", OBJECT)
    answer = answer.asType(handles.method_type(session, OBJECT, STRING))
    answer = handles.ignoring(session, handles.after(session, answer, name_of), 0, OBJECT)
    answer = handles.ignoring(session, answer, 2, OBJECTS)
    is_equals = handles.bound(session, "equals", STRING, "equals", "boolean")
    is_equals = is_equals.asType(handles.method_type(session, "boolean", STRING))
    is_equals = handles.ignoring(session, handles.after(session, is_equals, name_of), 0, OBJECT)
    # The text of an index says all of it, and no other object has this text.
    equal = handles.bound(session, name, STRING, "equals", "boolean")
    equal = equal.asType(handles.method_type(session, OBJECT, STRING))
    text = handles.static(session, STRING, "valueOf", STRING, OBJECT)
    equal = handles.after(session, equal, text, handles.first_of_array(session))
    equal = handles.ignoring(session, equal, 0, OBJECT, METHOD)
    handler = handles.choice(session, is_equals, equal, answer)
    return handles.instance(session, "java.lang.reflect.InvocationHandler", handler)
