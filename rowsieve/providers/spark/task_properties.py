"""Reads the local properties of a task, among which are the settings of its session."""

from __future__ import annotations

from pyspark import TaskContext


def property_of_task(name: str) -> str | None:
    """A local property of this task: settings of the session that are set are among them."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)
