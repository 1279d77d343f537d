"""The arguments and options that commands share, and the parsers of their text.

Text that is not `name=value` is wrong usage (exit code 2); the API checks the values.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import typer

import rowsieve
from rowsieve.cli import completing
from rowsieve.cli.named import located, named_like
from rowsieve.errors import TableNotFound

if TYPE_CHECKING:
    from rowsieve.bridges.session import Session
    from rowsieve.table import Table

INT64_MAX: Final = 2**63 - 1  # the largest whole number
SHOWN_ROWS: Final = 100  # of a text table, unless the command says how many


_PARAMETERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "text": str,
    "int": int,
    "float": float,
    "decimal": Decimal,
    "bool": {"true": True, "false": False}.__getitem__,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "uuid": UUID,
    "hex": bytes.fromhex,
    "null": {"": None}.__getitem__,
}
"""The parsers of the values of parameters, by the type that is written."""


def existing_file(path: Path | None) -> Path | None:
    """The path of a file, or `-` for stdin; anything else is wrong usage."""
    if path is None or str(path) == "-":
        return path
    if not path.exists():
        raise typer.BadParameter(f"file {str(path)!r} does not exist; stdin is -")
    if path.is_dir():
        raise typer.BadParameter(f"{str(path)!r} is a directory; give a file")
    if not os.access(path, os.R_OK):
        raise typer.BadParameter(f"file {str(path)!r} is not readable")
    return path


Uri = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A folder, or a URI such as s3://bucket/table; a name with --catalog.",
        show_default=False,
        autocompletion=completing.tables,
    ),
]
InputFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Rows: .parquet, .csv, .tsv, .jsonl, .ndjson, .arrow, .ipc or .feather; - is stdin.",
        callback=existing_file,
        show_default=False,
    ),
]
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="NAME", help="The format of the file, if its suffix does not name it."
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHARACTER", help="The delimiter of CSV fields.")
]
Wide = Annotated[
    bool, typer.Option("--wide", help="Show all columns, however narrow the terminal.")
]
Vertical = Annotated[
    bool, typer.Option("--vertical", help="Show each row as lines of names and values.")
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="A setting of the object store, such as region or access_key_id; repeatable.",
    ),
]
Version = Annotated[
    str | None,
    typer.Option(
        "--version",
        metavar="VERSION",
        help="Read this version instead of the newest: a number, or a tag.",
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="Read the version at this ISO-8601 time."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="Show only this column; repeatable.",
        autocompletion=completing.columns,
    ),
]
Dialect = Annotated[
    str,
    typer.Option(
        help="The SQL dialect of conditions: postgres, spark, datafusion, duckdb.",
        autocompletion=completing.dialects,
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        metavar="AREA/CITY",
        help="The session time zone of the condition; UTC by default.",
    ),
]
Ansi = Annotated[
    bool | None,
    typer.Option(
        "--ansi/--no-ansi", help="Whether the Spark session is in ANSI mode; it is by default."
    ),
]
Format: TypeAlias = Literal["text", "csv", "json", "markdown", "parquet"]
Limit: TypeAlias = Annotated[
    int | None,
    typer.Option(min=0, help=f"Print this many rows (text: {SHOWN_ROWS} unless given)."),
]
Output: TypeAlias = Annotated[
    Format, typer.Option(help="The output format; json is one line per row.")
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write the picture to this file, as HTML."),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME[:TYPE]=VALUE",
        help="The value of $NAME in the statement, text without a TYPE; a list if repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Nulls = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="CSV text that also means NULL; repeatable.",
    ),
]
Unchanged = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="A column that lists the columns which a row keeps."),
]
Combine = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=RULE", help="Combine a value with the row's, such as hits=sum."),
]
SchemaMode = Annotated[
    Literal["strict", "merge"],
    typer.Option(help="merge: add the columns that the table lacks, and widen types."),
]
Notes = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="NAME=VALUE", help="Metadata of the commit; repeatable."),
]
TokenText = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="APP:SEQUENCE",
        help="Commit at most once: nothing is done if APP committed SEQUENCE or a later one.",
    ),
]


def read_pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Parse `name=value` texts; other text and repeated names are wrong usage."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{option} takes NAME=VALUE, not {text!r}")
        if name in pairs:
            raise typer.BadParameter(f"{option} names {name!r} twice; give it once")
        pairs[name] = value
    return pairs


def read_params(texts: list[str] | None) -> dict[str, Any] | None:
    """Parse `name:type=value` texts; a repeated name has a list of values. None without texts."""
    values: dict[str, list[Any]] = {}
    for text in texts or ():
        written, equals, value = text.partition("=")
        name, _, kind = written.partition(":")
        if not (name and equals):
            raise typer.BadParameter(f"--param takes NAME[:TYPE]=VALUE, not {text!r}")
        if (parsed := _PARAMETERS.get(kind or "text")) is None:
            raise typer.BadParameter(f"--param {text}: a TYPE is one of {', '.join(_PARAMETERS)}")
        try:
            values.setdefault(name, []).append(parsed(value))
        except (ValueError, KeyError, ArithmeticError) as error:
            raise typer.BadParameter(f"--param {text}: {value!r} is not of type {kind}") from error
    if not values:
        return None
    return {name: each[0] if len(each) == 1 else each for name, each in values.items()}


def read_token(text: str | None) -> tuple[str, int] | None:
    """Parse `application:sequence`."""
    if text is None:
        return None
    application, _, sequence = text.rpartition(":")
    whole = sequence.isascii() and sequence.isdigit() and len(sequence) < 20
    if not (application and whole and int(sequence) <= INT64_MAX):
        raise typer.BadParameter(
            f"--token takes APP:SEQUENCE, such as loader:17, up to 63 bits, not {text!r}"
        )
    return application, int(sequence)


def read_version(text: str) -> int | str:
    """Parse the number of a version; other text is the name of a tag."""
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        return text
    if not 0 <= (number := int(text[:20])) <= INT64_MAX:
        raise typer.BadParameter(f"a version is from 0 to {INT64_MAX}, not {text}")
    return number


def session_of(time_zone: str | None, ansi: bool | None) -> Session | None:
    """The session of the options; None if no option is given."""
    if time_zone is None and ansi is None:
        return None
    return rowsieve.Session("UTC" if time_zone is None else time_zone, ansi)


def open_at(
    uri: str,
    storage_option: list[str] | None,
    version: str | None = None,
    as_of: str | None = None,
) -> Table:
    """Open the table that a command names; `version` is a number, or a tag."""
    wanted = version and read_version(version)
    options = read_pairs(storage_option, "--storage-option")
    location = located(uri, options)
    try:
        return rowsieve.open_table(location, version=wanted, as_of=as_of, storage_options=options)
    except TableNotFound as error:
        if near := named_like(uri, options):
            raise TableNotFound(f"{error}{near}") from error
        raise
