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
_FLAGS: Final = {  # an argument of Python, and the option that means the same, with its value
    "if_absent='ignore'": "if_exists",
    "if_exists='ignore'": "if_not_exists",
    "on_bad='collect'": "bad TABLE",
}
_CALL: Final = (
    rf"(?<![\w/.])(?<!CALL )(?:rs\.|table\.|t\.)?(?P<call>{'|'.join(_COMMANDS)})\b"
    r"(?:\(\))?(?![\w(/])"
)
_METHOD: Final = r"(?<![\w/.])(?:table\.|t\.)?(?P<method>history|refs)\(\)"
_PARAMETER: Final = r"\bparams=\{'(?P<parameter>\w+)': …\}"
_VALUE: Final = r"'[^']*'|\"[^\"]*\"|\w+"
# What is quoted is the user's, such as a condition or a column, and stays as it is.
_QUOTED: Final = r"(?<![\w=])(?:'[^']*'|\"[^\"]*\")(?!\w)"


def in_own_words(message: str, options: Iterable[str]) -> str:
    """The message; `options` are the names of the command's options in Python."""
    names = sorted(options, key=len, reverse=True)
    forms = [_PARAMETER, _METHOD, _CALL]
    if flags := "|".join(text for text, option in _FLAGS.items() if option.split()[0] in names):
        forms.append(rf"(?<![\w./])(?P<flag>{flags})")
    if option := "|".join(map(re.escape, names)):
        forms.append(rf"(?<![\w./])(?P<option>{option})=(?P<value>{_VALUE})?")
    return re.sub("|".join([*forms, _QUOTED]), _translated, message)


def _translated(match: re.Match[str]) -> str:
    if match["call"]:
        listed = match.string[: match.start()].endswith(", ")
        listed &= match.string.startswith(", ", match.end())
        return match[0] if listed else _COMMANDS[match["call"]]  # a list may be one of procedures
    if match["method"]:
        return f"rowsieve {match['method']}"
    if match["parameter"]:
        return f"--param {match['parameter']}=…"
    named = match.groupdict()
    if flag := named.get("flag"):
        return f"--{_FLAGS[flag].replace('_', '-')}"
    if option := named.get("option"):
        value = (named["value"] or "").strip("'\"")
        option = f"--{option.replace('_', '-')}"
        return option if value in ("", "True") else f"{option} {value}"
    return match[0]
