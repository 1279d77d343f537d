"""An S3 server on loopback that answers each request after a set time, and records requests.

It is what a benchmark of round trips needs and no more: objects in memory, ranges, conditional
puts, uploads in parts, listings, deletes one by one and in bulk. It runs in a process of its own,
so that its CPU does not count.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

BUCKET: Final = "bucket"
_PAGE: Final = 1000
_CONTROL: Final = "/-control"


class Answered(NamedTuple):
    """One request: when it came and was answered, in seconds, and what it moved."""

    begun_s: float
    ended_s: float
    method: str
    target: str
    sent_bytes: int


class Traffic(NamedTuple):
    """What a piece of work asked for.

    `trips`: the longest chain of requests that do not overlap, each of which may have waited for
    the one before.
    """

    requests: int
    trips: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class SlowStore:
    """A running server."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """The `storage_options` of a table in it."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "allow_http": "true",
        }

    def set_delay(self, delay_s: float) -> None:
        """Answer each request so long after it came."""
        self._control(f"delay={delay_s}")

    def take(self) -> list[Answered]:
        """The requests since the last call."""
        return [Answered(*each) for each in json.loads(self._control("take=1"))]

    def _control(self, query: str) -> bytes:
        with urllib.request.urlopen(f"{self.endpoint}{_CONTROL}?{query}", timeout=60) as answer:
            data: bytes = answer.read()
            return data


def traffic(answered: list[Answered]) -> Traffic:
    """Sum requests up."""
    trips, last_end = 0, float("-inf")
    for each in sorted(answered, key=lambda one: one.ended_s):
        if each.begun_s >= last_end:
            trips, last_end = trips + 1, each.ended_s
    return Traffic(len(answered), trips, sum(each.sent_bytes for each in answered))


@contextmanager
def slow_store() -> Iterator[SlowStore]:
    """A server with an empty bucket in a process of its own, without delay; ends with the block."""
    command = [sys.executable, "-m", "benchmarks.slow_store"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield SlowStore(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.terminate()


class _Server:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.answered: list[Answered] = []
        self.delay_s = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
                begun = clock()
                method, target, _ = head[0].split(" ")
                fields = (line.split(":", 1) for line in head[1:] if line)
                headers = {name.strip().lower(): value.strip() for name, value in fields}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if target.startswith(_CONTROL):
                    status, more, data = self._controlled(parse_qs(urlsplit(target).query))
                else:
                    await asyncio.sleep(self.delay_s)
                    status, more, data = self._answer(method, target, headers, body)
                lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", *more, "", ""]
                body = b"" if method == "HEAD" else data
                writer.write("\r\n".join(lines).encode() + body)
                await writer.drain()
                if not target.startswith(_CONTROL):
                    self.answered.append(Answered(begun, clock(), method, target, len(body)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _controlled(self, query: dict[str, list[str]]) -> tuple[int, list[str], bytes]:
        if "delay" in query:
            self.delay_s = float(query["delay"][0])
        answered, self.answered = self.answered, [] if "take" in query else self.answered
        return 200, [], json.dumps(answered if "take" in query else []).encode()

    def _answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[str], bytes]:
        parts = urlsplit(target)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        if method == "GET" and "list-type" in query:
            return 200, [], self._listing(query)
        if method == "POST" and "delete" in query:
            for name in ElementTree.fromstring(body).iter():
                if name.tag.endswith("Key"):
                    self.objects.pop(name.text or "", None)
            return 200, [], b"<DeleteResult></DeleteResult>"
        if "uploads" in query or "uploadId" in query:
            return 200, ['ETag: "1"'], self._upload(key, query, body)
        if method == "PUT":
            if headers.get("if-none-match") and key in self.objects:
                return 412, [], b"<Error><Code>PreconditionFailed</Code></Error>"
            self.objects[key] = body
            return 200, ['ETag: "1"'], b""
        if method == "DELETE":
            self.objects.pop(key, None)
            return 204, [], b""
        if (data := self.objects.get(key)) is None:
            return 404, [], b"<Error><Code>NoSuchKey</Code></Error>"
        more = ['ETag: "1"', "Last-Modified: Sun, 29 Nov 2026 00:00:00 GMT"]
        if (wanted := headers.get("range")) is None:
            return 200, more, data
        first, last = wanted.removeprefix("bytes=").split("-")
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(len(data), int(last) + 1) if first and last else len(data)
        return (
            206,
            [*more, f"Content-Range: bytes {start}-{stop - 1}/{len(data)}"],
            data[start:stop],
        )

    def _upload(self, key: str, query: dict[str, list[str]], body: bytes) -> bytes:
        """Begin an upload in parts, take a part, or join the parts."""
        if "uploads" in query:
            number = str(len(self.uploads))
            self.uploads[number] = {}
            return (
                f"<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{key}</Key>"
                f"<UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
            ).encode()
        number = query["uploadId"][0]
        if "partNumber" in query:
            self.uploads[number][int(query["partNumber"][0])] = body
            return b""
        parts = self.uploads[number]
        self.objects[key] = b"".join(parts[each] for each in sorted(parts))
        return (
            f"<CompleteMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{key}</Key>"
            '<ETag>"1"</ETag></CompleteMultipartUploadResult>'
        ).encode()

    def _listing(self, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        delimiter = query.get("delimiter", [""])[0]
        lines: dict[str, str] = {}
        names = [name for name in self.objects if name.startswith(prefix) and name > after]
        names.sort()
        for name in names[:_PAGE]:
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
                lines[folder] = f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"
            else:
                lines[name] = (
                    f"<Contents><Key>{name}</Key><LastModified>2026-11-29T00:00:00.000Z"
                    f'</LastModified><ETag>"1"</ETag><Size>{len(self.objects[name])}</Size>'
                    "<StorageClass>STANDARD</StorageClass></Contents>"
                )
        more = len(names) > _PAGE
        token = f"<NextContinuationToken>{names[_PAGE - 1]}</NextContinuationToken>" if more else ""
        return (
            f"<ListBucketResult><Name>{BUCKET}</Name><Prefix>{prefix}</Prefix><KeyCount>"
            f"{len(lines)}</KeyCount><MaxKeys>{_PAGE}</MaxKeys><IsTruncated>{str(more).lower()}"
            f"</IsTruncated>{token}{''.join(lines.values())}</ListBucketResult>"
        ).encode()


async def _run() -> None:
    server: Any = await asyncio.start_server(
        _Server().serve, "127.0.0.1", 0, limit=1 << 20, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_run())
