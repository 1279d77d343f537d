"""Where a quote of CSV text is not closed.

pyarrow takes such a quote for a field that reaches to the end of the file: every row after it would
become text of one row. So this may never miss one, by the rules of pyarrow's reader: a quote opens
where a field begins, `""` within quotes is a quote, and any other quote is text.
"""

from __future__ import annotations

import re
from typing import Final

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def open_quote(text: bytes, delimiter: str) -> int | None:
    """The line, from 1, of the quote that is not closed, or None; linear, at C's speed."""
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
