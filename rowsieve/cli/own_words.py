"""Messages in the words of the command line: options and commands in place of Python's calls.

Only how a message is written depends on its words; nothing is decided by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_COMMANDS: Final = {
    "apply_changes": "rowsieve apply",
    "apply_events": "rowsieve apply",
    "create_namespace": "rowsieve create-namespace",
    "create_table": "rowsieve create",
    "drop_namespace": "rowsieve drop-namespace",
    "drop_ref": "rowsieve drop-ref",
    "drop_table": "rowsieve drop",
    "expire_versions": "rowsieve expire",
    "fast_forward": "rowsieve fast-forward",
    "maintenance_advice": "rowsieve maintain --advice",
    "register_table": "rowsieve register",
    "rename_table": "rowsieve rename",
    "set_properties": "rowsieve set",
    "unset_properties": "rowsieve unset",
}
_CALL: Final = re.compile(
    rf"(?<![\w/.])(?<!CALL )(?:rs\.|table\.|t\.)?({'|'.join(_COMMANDS)})\b(?:\(\))?(?![\w(/])"
)
_WITH_PARENTHESES: Final = re.compile(r"(?<![\w/.])(?:table\.|t\.)?(history|refs)\(\)")
_PARAMETER: Final = re.compile(r"\bparams=\{'(\w+)': …\}")
_VALUE: Final = r"('[^']*'|\"[^\"]*\"|\w+)?"


def in_own_words(message: str, options: Iterable[str]) -> str:
    """The message; `options` are the names of the command's options in Python."""
    text = _CALL.sub(lambda match: _COMMANDS[match[1]], message)
    text = _WITH_PARENTHESES.sub(r"rowsieve \1", text)
    text = _PARAMETER.sub(r"--param \1=…", text)
    if names := "|".join(map(re.escape, sorted(options, key=len, reverse=True))):
        text = re.sub(rf"(?<![\w./])({names})={_VALUE}", _option, text)
    return text


def _option(match: re.Match[str]) -> str:
    value = (match[2] or "").strip("'\"")
    return f"--{match[1].replace('_', '-')}{' ' if value else ''}{value}"
