"""The prompt of `rowsieve sql`: statements until `;`, with history and completion.

Where stdin is no terminal, its text is a script, which ends with the first statement that fails.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import typer

from rowsieve.cli.interrupts import forget_interrupt, was_interrupted, was_terminated
from rowsieve.cli.own_words import in_own_words
from rowsieve.errors import InvalidInput, NotFound, RowsieveError
from rowsieve.shown import printable_lines

if TYPE_CHECKING:
    from rowsieve.catalog import Catalog
    from rowsieve.database.database import Database

HISTORY_LINES: Final = 5_000  # lines of the history
_HELP: Final = r"""A statement ends with ; and may have several lines.
\d        the tables        \d TABLE  its columns
\x        rows as lines, or as a table again
\q        leave, as Ctrl-D does; Ctrl-C drops what was typed"""
_WORDS: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "JOIN", "INSERT INTO", "VALUES"),
    *("UPDATE", "SET", "DELETE FROM", "MERGE INTO", "USING", "WHEN MATCHED", "WHEN NOT MATCHED"),
    *("CREATE TABLE", "DROP TABLE", "ALTER TABLE", "CREATE SCHEMA", "SHOW TABLES", "DESCRIBE"),
    *("CALL system.", "EXPLAIN", "COUNT(*)", "FOR VERSION AS OF", "BEGIN", "COMMIT", "ROLLBACK"),
)
_BYTE_ORDER_MARK: Final = "\ufeff"
_LEAVES: Final = ("\\q", "exit", "quit")
_WITHOUT_BACKSLASH: Final = ("help",)  # commands as other prompts have them
_DESCRIBES: Final = re.compile(r"\\d\s+(\S+)")


@dataclass(slots=True)
class Prompt:
    """Reads statements for a catalog; `run` runs one and prints its rows, vertically or not.

    `check` raises an error where there is no catalog.
    """

    catalog: Catalog | Database
    run: Callable[[str, bool], None]
    check: Callable[[], None]
    vertical: bool = False
    _columns: dict[str, list[str]] = field(default_factory=dict)

    def script(self, text: str) -> None:
        """Run the statements of a text, without a byte order mark; the first error ends it."""
        statements, rest = split_statements(text.removeprefix(_BYTE_ORDER_MARK))
        for statement in [*statements, *([rest] if has_tokens(rest) else [])]:
            self.run(statement, self.vertical)

    def talk(self) -> None:
        """Ask for statements until the end of the input; errors are printed."""
        typer.echo(f"{self.catalog.uri}: statements end with ;  \\? for help, \\q to leave")
        try:
            self.check()
        except NotFound as error:  # a statement may create it
            typer.echo(str(error), err=True)
        with _LineEditing(self._candidates) as editing:
            waiting = ""
            while True:
                try:
                    line = input("     ...> " if waiting else "rowsieve> ")
                except EOFError:
                    typer.echo("")
                    return
                except KeyboardInterrupt:
                    if was_terminated():
                        raise
                    forget_interrupt()
                    waiting = ""
                    typer.echo("")
                    continue
                editing.save()
                if not waiting and line.strip().rstrip(";") in _LEAVES:
                    return
                waiting = self._take(line, waiting)

    def _take(self, line: str, waiting: str) -> str:
        """Run what is complete with this line; return the text that waits for more."""
        command = line.strip()
        if not waiting and (command.startswith("\\") or command.rstrip(";") in _WITHOUT_BACKSLASH):
            self._attempt(partial(self._command, command))
            return ""
        statements, rest = split_statements(f"{waiting}\n{line}" if waiting else line)
        for statement in statements:
            self._columns.clear()  # a statement may change them
            if not self._attempt(partial(self.run, statement, self.vertical)):
                return ""
        return rest if has_tokens(rest) else ""

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Run this; print an error or interruption, and return whether there was none."""
        try:
            work()
        except KeyboardInterrupt:
            if was_terminated():
                raise
            typer.echo("interrupted; the history of a table tells what was committed", err=True)
        except RowsieveError as error:
            if not was_interrupted():
                message = printable_lines(in_own_words(str(error), ()))
                typer.echo(f"{type(error).__name__}: {message}", err=True)
        else:
            return True
        forget_interrupt()
        return False

    def _command(self, line: str) -> None:
        if line == "\\x":
            self.vertical = not self.vertical
        elif line == "\\d":
            self.check()
            for name in self.catalog.tables():
                typer.echo(name)
        elif match := _DESCRIBES.fullmatch(line):
            for column in self.catalog.open_table(match[1].rstrip(";")).schema:
                null = "" if column.nullable else " NOT NULL"
                typer.echo(f"{column.name}  {column.type}{null}")
        elif line == "\\?" or line.rstrip(";") in _WITHOUT_BACKSLASH:
            typer.echo(_HELP)
        else:
            raise InvalidInput(f"unknown command {line}; \\? lists the commands")

    def _candidates(self, word: str, line: str) -> list[str]:
        """Keywords, tables, and columns of the tables that the line names, which begin so."""
        names: list[str] = []
        with suppress(RowsieveError, OSError):
            names = self.catalog.tables()
        columns = [column for name in names if name in line for column in self._columns_of(name)]
        known = [*columns, *names, *(names and [f"{n.partition('.')[0]}." for n in names]), *_WORDS]
        folded = word.casefold()
        return list(dict.fromkeys(each for each in known if each.casefold().startswith(folded)))

    def _columns_of(self, name: str) -> list[str]:
        if name not in self._columns:
            self._columns[name] = []
            with suppress(RowsieveError, OSError):
                self._columns[name] = self.catalog.open_table(name).schema.names
        return self._columns[name]


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements that end with `;`, and the text after them.

    A `;` in quotes or comments ends nothing; a quote that is open waits for more text.
    """
    import sqlglot

    try:
        tokens = sqlglot.tokenize(text, read="postgres")
    except sqlglot.TokenError:
        return [], text
    statements, start = [], 0
    for token in tokens:
        if token.token_type is sqlglot.TokenType.SEMICOLON:
            if has_tokens(statement := text[start : token.start]):
                statements.append(statement.strip())
            start = token.end + 1
    return statements, text[start:]


def has_tokens(text: str) -> bool:
    """Return whether the text has more than spaces, `;` and comments."""
    import sqlglot

    try:
        return any(
            token.token_type is not sqlglot.TokenType.SEMICOLON
            for token in sqlglot.tokenize(text, read="postgres")
        )
    except sqlglot.TokenError:
        return True


class _LineEditing:
    """Edit lines by readline where Python has it, with a history in the user's state folder.

    The history has each line once it is read: a prompt that is killed loses none, and prompts at
    the same time keep those of each other.
    """

    def __init__(self, candidates: Callable[[str, str], list[str]]) -> None:
        self._candidates = candidates
        self._shown: list[str] = []
        self._saved = 0  # lines of readline's history

    def __enter__(self) -> Self:
        try:
            import readline
        except ImportError:  # Windows
            return self
        readline.set_history_length(HISTORY_LINES)
        with suppress(OSError):
            readline.read_history_file(history_file())
        self._saved = readline.get_current_history_length()
        readline.set_completer_delims(" \t\n,()=<>;")
        readline.set_completer(self._complete)
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ImportError):
            import readline

            readline.set_completer(None)

    def save(self) -> None:
        """Append the lines that are new to the history file."""
        with suppress(ImportError, OSError, AttributeError):  # libedit may lack the function
            import readline

            if (count := readline.get_current_history_length() - self._saved) <= 0:
                return
            self._saved += count
            path = history_file()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            readline.append_history_file(count, path)

    def _complete(self, word: str, state: int) -> str | None:
        import readline

        if state == 0:
            self._shown = self._candidates(word, readline.get_line_buffer())
        return self._shown[state] if state < len(self._shown) else None


def history_file() -> Path:
    """Where the prompt keeps its lines."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "rowsieve" / "history"


def is_terminal() -> bool:
    """Return whether somebody types."""
    return sys.stdin.isatty()
