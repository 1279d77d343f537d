"""Changes of columns and fields, broken: ids, defaults, ages, types and conflicts forgotten."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

FIELDS = ("tests/changes/test_evolving_fields.py",)
WIDER = ("tests/changes/test_widening.py",)
TABLES = ("tests/changes/test_alter_table.py",)
RACES = ("tests/changes/test_evolving_races.py",)
NESTED, EVOLUTION, ALTERING = (
    "parquet/nested_columns.py",
    "types/evolution.py",
    "changes/column_changes.py",
)
SUITES = {NESTED: FIELDS, EVOLUTION: FIELDS, ALTERING: WIDER}

MUTANTS = (
    Mutant(
        NESTED,
        "a field is taken as it is if its name and type are (trap T19)",
        "if stored.equals(arrow_field(field), check_metadata=True):",
        "if stored.equals(arrow_field(field)):",
    ),
    Mutant(
        NESTED,
        "an added field has its default where its struct is NULL",
        "return _where(present, filled) if change.is_valid else filled",
        "return filled",
    ),
    Mutant(
        NESTED,
        "a struct is never NULL",
        "mask = None if present is None else pc.invert(present)",
        "mask = None",
    ),
    Mutant(
        NESTED,
        "the first leaf is forgotten where no field is left",
        "return leaves or [first], _struct_converter",
        "return leaves, _struct_converter",
    ),
    Mutant(
        "stats/fills.py",
        "an added field is never NULL (trap T20)",
        "Fill.of(field.added, field.type, value, maybe_null=inside)",
        "Fill.of(field.added, field.type, value)",
        FIELDS,
    ),
    Mutant(
        "stats/fills.py",
        "what is derived from an added field is never NULL (trap T20)",
        "Fill.of(fill.added, each.type, value, maybe_null=fill.maybe_null)",
        "Fill.of(fill.added, each.type, value)",
        ("tests/planner/test_changed_columns.py",),
    ),
    Mutant(
        "stats/fills.py",
        "a path without a value in the default has one",
        "ColumnStatistics(kinds=int(JsonKind.MISSING))",
        "ColumnStatistics(kinds=int(JsonKind.STRING))",
        ("tests/planner/test_changed_columns.py",),
    ),
    Mutant(
        EVOLUTION,
        "a dropped field may be written (rule 14)",
        '            return f"{what} {field.name!r} was dropped"\n',
        "            continue\n",
    ),
    Mutant(
        EVOLUTION,
        "rows with NULL may be written into a column that disallows it",
        'if field.nullable and not now.nullable:\n            return f"{what}',
        'if False:\n            return f"{what}',
        TABLES,
    ),
    Mutant(
        EVOLUTION,
        "a default keeps its text when a date becomes a timestamp",
        "replace(field, type=new, fill=fill, default=default, float_since=since)",
        "replace(field, type=new, float_since=since)",
        WIDER,
    ),
    Mutant(
        EVOLUTION,
        "fields inside columns need no newer reader",
        "and (is_nested(field.type) or isinstance(field.type, Date) or field.id in key_ids)",
        "and (isinstance(field.type, Date) or field.id in key_ids)",
    ),
    Mutant(
        "parquet/bloom.py",
        "a timestamp is looked up as the day after its own",
        "days = numbers // day ",
        "days = numbers // day + 1 ",
        WIDER,
    ),
    Mutant(
        ALTERING,
        "dates of hidden rows are not looked at",
        "if far.any():",
        "if False:",
    ),
    Mutant(
        ALTERING,
        "NULL is disallowed without a proof",
        "        if rows:\n",
        "        if False:\n",
        TABLES,
    ),
    Mutant(
        ALTERING,
        "a change is computed again whatever became of its columns",
        "if any(now.get(field.name) != (field.id, field.type) for field in reads()):",
        "if False:",
        RACES,
    ),
)
