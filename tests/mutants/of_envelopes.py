"""The reading of change events, broken: their order, what they say, and what they leave out."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

ALIKE, BATCHES, TABLE, ORDERS, STRUCTS, PLAIN, MERGED, SPELLING, WAL2JSON, MYSQL = (
    f"envelopes/{name}.py"
    for name in (
        "alike_messages",
        "change_batches",
        "changes_table",
        "event_orders",
        "row_structs",
        "plain_rows",
        "merged_schema",
        "spelling",
        "wal2json",
        "mysql_formats",
    )
)
READINGS = "envelopes/values/readings.py"
TEMPLATES, MATCHING = (
    "envelopes/templates/message_templates.py",
    "envelopes/templates/template_matching.py",
)
UNDONE = "change_feed/undone_rewrites.py"
_GOLDEN = ("tests/envelopes/test_golden_events.py",)
_EVENTS = ("tests/envelopes/test_debezium.py", "tests/envelopes/test_unsent_values.py")
_COLUMNS = ("tests/envelopes/test_merged_columns.py",)
_TEMPLATES = ("tests/envelopes/test_columnar_messages.py",)
SUITES = {
    ALIKE: ("tests/envelopes/test_alike_messages.py",),
    BATCHES: _EVENTS,
    TABLE: _EVENTS,
    ORDERS: _GOLDEN,
    STRUCTS: _COLUMNS,
    PLAIN: _GOLDEN,
    MERGED: _COLUMNS,
    SPELLING: _GOLDEN,
    WAL2JSON: ("tests/envelopes/test_event_formats.py",),
    MYSQL: _GOLDEN,
    READINGS: _GOLDEN,
    TEMPLATES: _TEMPLATES,
    MATCHING: _TEMPLATES,
    UNDONE: ("tests/change_feed/test_undone_rewrites.py",),
}

MUTANTS = (
    Mutant(
        TEMPLATES,
        "a name that is twice in an object counts once",
        "not name or name in names or",
        "not name or",
    ),
    Mutant(
        MATCHING,
        "a message may go on after the template",
        "walk.keep(walk.at == messages.stops[walk.rows])",
        "walk.keep(walk.at <= messages.stops[walk.rows])",
    ),
    Mutant(
        MATCHING,
        "integers begin with zeros",
        "right &= ~(leading & ((digits > 1) | negative))",
        "right &= ~(leading & negative)",
    ),
    Mutant(
        MATCHING,
        "integers have up to 20 digits",
        "_DIGITS_OF_INT64: Final = 18",
        "_DIGITS_OF_INT64: Final = 20",
    ),
    Mutant(
        MATCHING,
        "an escape in text that is read stands for itself",
        "null, escapes=not slot.read)",
        "null, escapes=True)",
    ),
    Mutant(
        MATCHING,
        "the last bytes of a fragment are not compared",
        "(_ALL >> 8 * (8 - len(part)))",
        "(_ALL >> 8 * (9 - len(part)))",
    ),
    Mutant(
        UNDONE,
        "a compaction is undone although a part went since",
        "if not (entry.removed or target.table.sequence)",
        "if not target.table.sequence",
    ),
    Mutant(
        UNDONE,
        "parts follow an undone compaction in an event order",
        "if not (entry.removed or target.table.sequence)",
        "if not entry.removed",
    ),
    Mutant(
        UNDONE,
        "parts that were added since are forgotten",
        "parts = parts.append(added)",
        "parts = parts",
    ),
    Mutant(
        ALIKE,
        "what the first message of a block says is that of all",
        "(name, Literal[value])",
        "(name, Any)",
    ),
    Mutant(
        ALIKE,
        "a number of the log that a message lacks is not looked for elsewhere",
        "msgspec.Meta(min_length=1)",
        "msgspec.Meta(min_length=0)",
    ),
    Mutant(
        BATCHES,
        "the first truncate counts",
        "np.flatnonzero(truncates)[np.argmax(numbers[truncates])]",
        "np.flatnonzero(truncates)[np.argmin(numbers[truncates])]",
    ),
    Mutant(
        BATCHES,
        "a truncate removes what is after it",
        "(at.numbers > at.numbers[last])",
        "(at.numbers < at.numbers[last])",
    ),
    Mutant(
        BATCHES,
        "different changes of one place collapse",
        "changed[one_number] = _differing(",
        "changed[one_number] = False & _differing(",
    ),
    Mutant(
        TABLE,
        "an update of the key leaves the row of the old one",
        "    places = np.flatnonzero(changed)\n",
        "    places = np.flatnonzero(changed)[:0]\n",
        _GOLDEN,
    ),
    Mutant(
        TABLE,
        "what a row with a new key lacks stays unsent",
        "        lacking[name][rows] = False\n",
        "        lacking[name][rows] = True\n",
    ),
    Mutant(
        TABLE,
        "a create with a marker for a value is applied",
        "            if value is not UNSET:\n",
        "            if False:\n",
    ),
    Mutant(
        TABLE,
        "a marker in whole rows is NULL",
        "if values[at] is not UNSET]",
        "if values[at] is not values[at]]",
        ("tests/envelopes/test_merged_columns.py",),
    ),
    Mutant(
        ORDERS,
        "the number of a log file is not compared",
        "        for values in field.comparable(column, field.name):\n",
        "        for values in field.comparable(column, field.name)[-1:]:\n",
        ("tests/envelopes/test_golden_events.py", "tests/envelopes/test_debezium.py"),
    ),
    Mutant(
        ORDERS,
        "only the last number of a place counts",
        "total = _joined(total, _dense(values))",
        "total = _dense(values)",
    ),
    Mutant(
        ORDERS,
        "rows of a snapshot come after changes of its place",
        "    return value is True or (isinstance(value, str) and value in _SNAPSHOT)\n",
        "    return not (value is True or (isinstance(value, str) and value in _SNAPSHOT))\n",
        _EVENTS,
    ),
    Mutant(
        STRUCTS,
        "a document that is absent is an empty text",
        "UNSET if each is not None and not bytes(each) else each",
        "each",
    ),
    Mutant(
        PLAIN,
        "names of the envelope are names of columns",
        "        yield from _at(payload, format_.after)\n",
        "        yield from (each for each in payload.values() if isinstance(each, Mapping))\n",
        ("tests/envelopes/test_golden_events.py",),
    ),
    Mutant(
        MERGED,
        "an unknown column that is NULL is never known",
        "needed = sent.values.keys() - sent.always_null()",
        "needed = ()",
    ),
    Mutant(
        MERGED,
        "a name of rows before alone is unknown",
        "        names |= names_of_rows(message, format_)\n",
        "        names |= sent.values.keys()\n",
    ),
    Mutant(
        MERGED,
        "the schema of the events says nothing",
        '        declared = column_types(message.get("schema"))\n',
        "        declared = column_types(None)\n",
    ),
    Mutant(
        SPELLING,
        "names in another case are unknown",
        "            if column not in present and only and spelled[0] not in known:\n",
        "            if False:\n",
    ),
    Mutant(
        WAL2JSON,
        "all changes of a transaction have one place",
        "message.nextlsn, place))",
        "message.nextlsn, 0))",
    ),
    Mutant(
        READINGS,
        "decimals have no sign",
        'partial(int.from_bytes, byteorder="big", signed=True)',
        'partial(int.from_bytes, byteorder="big", signed=False)',
    ),
    Mutant(
        BATCHES,
        "a row of a snapshot without a change after it is left out",
        "np.asarray((marks == 0) & followed[places], bool)",
        "np.asarray(marks == 0, bool)",
        ("tests/envelopes/test_event_order.py",),
    ),
    Mutant(
        BATCHES,
        "a change of some columns replaces the row of a snapshot",
        "whole = (marks == 1) & np.asarray(table.column(UNCHANGED).is_null())",
        "whole = marks == 1",
        ("tests/envelopes/test_event_order.py",),
    ),
)
