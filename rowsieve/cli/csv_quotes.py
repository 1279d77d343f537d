"""Finds a quote in CSV text that is not closed.

pyarrow reads such a quote as a field that extends to the end of the file, so all following rows
would become text of one row. Soundness: this finds every such quote under the rules of pyarrow's
reader: a quote opens at the start of a field, `""` inside quotes is a quote, any other quote is
text.
"""

from __future__ import annotations

import re
from typing import Final

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def open_quote(text: bytes, delimiter: str) -> int | None:
    """The line, from 1, of the quote that is not closed; None if all are. Linear time, in C."""
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    closed = re.compile(
        rb'(?:[^"]++|(?<=[^%s])"|(?:\A|(?<=[%s]))"(?:[^"]++|"")*+")*+' % (ends, ends)
    )
    start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    body = memoryview(text)[start:]
    found = closed.match(body)
    read = found.end() if found else 0
    if read == len(body):
        return None
    before = text[: start + read]
    return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
