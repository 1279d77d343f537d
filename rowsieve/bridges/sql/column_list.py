"""Parse column definitions as in CREATE TABLE, `id bigint, name varchar`, to a schema."""

from __future__ import annotations

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.errors import InvalidInput
from rowsieve.types.logical import Field, LogicalType
from rowsieve.types.schema import Schema, named_type


def columns_of(text: str, dialect: str = "postgres") -> Schema:
    """Parse columns with the types of a dialect; each column is nullable."""
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import
    from sqlglot import exp  # noqa: PLC0415

    from rowsieve.bridges.sql.grammars import damage_as_parse_error  # noqa: PLC0415
    from rowsieve.bridges.sql.typenames import column_type  # noqa: PLC0415

    known = dialect_named(dialect)
    try:
        with damage_as_parse_error():
            definition = sqlglot.parse_one(f"CREATE TABLE t ({text})", read=known.grammar)
    except (sqlglot.ParseError, sqlglot.TokenError) as error:
        raise InvalidInput(
            f"cannot read the columns {text!r}; write them as in id bigint, name varchar"
        ) from error
    fields: list[Field] = []
    columns = definition.this.expressions if isinstance(definition, exp.Create) else []
    if not columns:
        raise InvalidInput("name the columns and their types, as in id bigint, name varchar")
    for number, column in enumerate(columns, 1):
        if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
            raise InvalidInput(f"{column.sql()!r} is not a column; write its name and its type")
        if any(column.name == field.name for field in fields):
            raise InvalidInput(f"the column {column.name!r} is defined twice; define each once")
        try:
            fields.append(
                Field(number, column.name, column_type(column.args["kind"], known, column.name))
            )
        except ValueError as error:
            raise InvalidInput(f"the column {column.name!r}: {error}") from error
    return Schema(0, tuple(fields))


def type_from_text(text: str) -> LogicalType:
    """Return the type that text names: one of ours, such as `uint64`, or one of PostgreSQL's.

    InvalidInput, which lists ours, for any other text.
    """
    try:
        return named_type(text)
    except InvalidInput as unknown:
        import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import
        from sqlglot import exp  # noqa: PLC0415

        from rowsieve.bridges.sql.grammars import damage_as_parse_error  # noqa: PLC0415
        from rowsieve.bridges.sql.typenames import column_type  # noqa: PLC0415

        known = dialect_named("postgres")
        try:
            with damage_as_parse_error():
                node = sqlglot.parse_one(text, read=known.grammar, into=exp.DataType)
            return column_type(node, known, text)
        except (sqlglot.ParseError, sqlglot.TokenError):
            raise unknown from None
        except ValueError as error:
            raise InvalidInput(f"there is no type {text!r}: {error}") from error
