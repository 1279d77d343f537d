"""Java's method handles, made and combined in the JVM of a classic Spark session.

With them the JVM calls its own methods many times, or implements an interface, without a call that
returns into this process. The types of their arguments are lists of the names of classes.
"""

from __future__ import annotations

from typing import Any, Final

from rowsieve.bridges.spark_columns.java_classes import java_class

OBJECT: Final = "java.lang.Object"
OBJECTS: Final = "[Ljava.lang.Object;"
STRING: Final = "java.lang.String"
METHOD: Final = "java.lang.reflect.Method"
_BOXES: Final = {
    "void": "java.lang.Void",
    "boolean": "java.lang.Boolean",
    "long": "java.lang.Long",
}


def java(session: Any, name: str) -> Any:
    """A class of the JVM, to call its constructors and static methods."""
    return java_class(session._jvm, name)


def class_named(session: Any, name: str) -> Any:
    """The object of a class or of a primitive type."""
    if name in _BOXES:
        return java(session, _BOXES[name]).TYPE
    return java(session, "java.lang.Class").forName(name)


def getter(session: Any, class_name: str, method: str) -> Any:
    """A method without arguments."""
    nothing = session.sparkContext._gateway.new_array(session._jvm.Class, 0)
    owner = class_named(session, class_name)
    return _lookup(session).unreflect(owner.getMethod(method, nothing))


def bound(session: Any, owner: Any, class_name: str, method: str, returned: str) -> Any:
    """A method of an object, which takes one object."""
    type_ = method_type(session, returned, OBJECT)
    handle = _lookup(session).findVirtual(class_named(session, class_name), method, type_)
    return handle.bindTo(owner)


def static(session: Any, class_name: str, method: str, returned: str, *arguments: str) -> Any:
    """A static method."""
    type_ = method_type(session, returned, *arguments)
    return _lookup(session).findStatic(class_named(session, class_name), method, type_)


def method_type(session: Any, returned: str, *arguments: str) -> Any:
    """The type of a method by the names of its classes."""
    result = class_named(session, returned)
    return java(session, "java.lang.invoke.MethodType").methodType(
        result, _classes(session, arguments)
    )


def after(session: Any, handle: Any, *inner: Any) -> Any:
    """The handle, whose first argument is the result of the inner handles, the last one first."""
    for each in inner:
        filters = session.sparkContext._gateway.new_array(
            java(session, "java.lang.invoke.MethodHandle"), 1
        )
        filters[0] = each
        handle = _handles(session).filterArguments(handle, 0, filters)
    return handle


def ignoring(session: Any, handle: Any, place: int, *types: str) -> Any:
    """The handle with more arguments at a place, which it ignores."""
    return _handles(session).dropArguments(handle, place, _classes(session, types))


def first_of_array(session: Any) -> Any:
    """A handle that gives the first object of an array."""
    place = session.sparkContext._gateway.new_array(session._jvm.Object, 1)
    place[0] = 0
    element = _handles(session).arrayElementGetter(class_named(session, OBJECTS))
    return _handles(session).insertArguments(element, 1, place)


def constant_long(session: Any, value: int) -> Any:
    """A handle that gives a long as an object: for py4j a small number is an int of Java."""
    constant = _handles(session).constant(class_named(session, "long"), value)
    return constant.asType(method_type(session, OBJECT))


def choice(session: Any, test: Any, handle: Any, otherwise: Any) -> Any:
    """A handle that runs one of two by a test of the first arguments."""
    return _handles(session).guardWithTest(test, handle, otherwise)


def instance(session: Any, interface: str, handle: Any) -> Any:
    """An instance of an interface of one method, which calls the handle."""
    proxies = java(session, "java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(class_named(session, interface), handle)


def function(session: Any, handle: Any) -> Any:
    """A function of Scala that calls the handle."""
    return instance(session, "scala.Function1", handle)


def _classes(session: Any, names: tuple[str, ...]) -> Any:
    classes = java(session, "java.util.ArrayList")()
    for name in names:
        classes.add(class_named(session, name))
    return classes


def _lookup(session: Any) -> Any:
    return _handles(session).publicLookup()


def _handles(session: Any) -> Any:
    return java(session, "java.lang.invoke.MethodHandles")
