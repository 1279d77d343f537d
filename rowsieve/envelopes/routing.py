"""Events of many tables: which of the call's messages belong to which table of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.envelopes.actions import EventAction
from rowsieve.envelopes.applying import (
    AppliedEvents,
    EventOptions,
    check_dead_letters,
    commit_batch,
    read_batch,
)
from rowsieve.envelopes.bad_events import BAD_EVENTS, BadEvents
from rowsieve.envelopes.change_batches import ChangeBatch
from rowsieve.envelopes.changes_table import Destination, meanings, shown_table, tables_of
from rowsieve.envelopes.event_formats import FORMATS
from rowsieve.envelopes.messages import OPERATION, Messages, read_messages
from rowsieve.envelopes.reading_events import read_entries
from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.input_files.given_paths import events_of_paths, names_files

TableOfSource: TypeAlias = Callable[[str], str | None]
"""Called with the name of a table of the source; returns that of a table here, or None."""


@dataclass(frozen=True, slots=True)
class AppliedTables:
    """What became of the events of many tables.

    `tables` has what was applied to each table, by its name here. `skipped` counts messages that
    change no row, and events of tables that the caller left out, by kind. `bad` are all bad events.
    """

    tables: Mapping[str, AppliedEvents]
    skipped: Mapping[str, int] = field(default_factory=dict)
    bad: pa.Table = field(default_factory=BAD_EVENTS.empty_table, compare=False)


def apply_to_tables(
    data: Any,
    options: EventOptions,
    table_of: Callable[[str], Any],
    open_table: Callable[[str], Any],
    storage_options: Mapping[str, Any],
) -> AppliedTables:
    """Read all events, then commit to each table once; bad ones are stored before."""
    check_dead_letters(options)
    if names_files(data):
        data = events_of_paths(data, OPERATION, pa.schema([]), storage_options)
    messages = read_messages(data)
    unrouted = BadEvents(messages.places, messages.shown)
    events_of, skipped = _route(messages, options, unrouted)
    sources = _sources_by_table(events_of, table_of, skipped)
    batches: list[tuple[str, Any, ChangeBatch, BadEvents]] = []
    for name, table_events in sources.items():
        events = sorted({event for source in table_events for event in events_of[source]})
        table = open_table(name)
        chosen = replace(options, sources=frozenset(table_events))
        batch, bad = read_batch(messages.take(events), table.handle.newest, chosen)
        batches.append((name, table, batch, bad))
    everything = [unrouted, *(bad for *_, bad in batches)]
    if options.on_bad == "error":
        for bad in everything:
            bad.refuse(OPERATION, adds_columns=options.schema_mode == "merge")
    bad_rows = pa.concat_tables([bad.table() for bad in everything]).sort_by("event")
    if options.bad_table is not None and bad_rows.num_rows:
        options.bad_table.append(bad_rows, token=options.token)
    stored = replace(options, bad_table=None)
    applied: dict[str, AppliedEvents] = {}
    for name, table, batch, bad in batches:
        try:
            applied[name] = commit_batch(table, batch, bad, stored)
        except RowsieveError as error:
            error.add_note(
                f"{OPERATION}: this is of the table {name}. Committed before it: "
                f"{', '.join(applied) or 'none'}; the call may be repeated as it is"
            )
            raise
    return AppliedTables(applied, dict(skipped), bad_rows)


def _sources_by_table(
    events_of: Mapping[str, list[int]], table_of: Callable[[str], Any], skipped: Counter[str]
) -> dict[str, set[str]]:
    """The tables of the source whose events go to each table here; counts those that go nowhere."""
    sources: dict[str, set[str]] = {}
    for source, events in events_of.items():
        name = table_of(source)
        if name is None:
            skipped["events of other tables"] += len(events)
        elif isinstance(name, str):
            sources.setdefault(name, set()).add(source)
        else:
            raise InvalidInput(
                f"{OPERATION}: table= must return a name or None for {source!r}, not {name!r}"
            )
    return sources


def _route(
    messages: Messages, options: EventOptions, bad: BadEvents
) -> tuple[dict[str, list[int]], Counter[str]]:
    """The messages that change each table of the source, and how many change none, by kind."""
    format_ = FORMATS[options.format]
    if not format_.source:
        raise InvalidInput(
            f"{OPERATION}: events of the format {format_.name} do not name their table; apply them "
            "to each table by its own apply_events"
        )
    events_of: dict[str, dict[int, None]] = {}
    skipped: Counter[str] = Counter()
    for kind, entries, read_as in read_entries(messages, format_, Destination((), ()), bad):
        for each, count in kind.items():
            skipped[each.value] += count
        codes, others = meanings(entries, read_as, bad)
        for each, count in others.items():
            skipped[each.value] += count
        changing = np.flatnonzero((codes >= 1) & (codes <= len(EventAction)))
        for table, places in tables_of(entries, read_as, changing).items():
            if not table[-1]:
                for event in entries.events[places]:
                    bad.add(int(event), "it does not name the table of the source that it is of")
                continue
            table_events = events_of.setdefault(shown_table(table), {})
            table_events.update(dict.fromkeys(entries.events[places].tolist()))
    return {source: list(events) for source, events in events_of.items()}, skipped
