"""An S3 server on loopback whose buckets are folders, so that Hadoop can read the same files.

It knows what obstore asks: single puts, create-only ones too, ranges, lists and deletes.
"""

from __future__ import annotations

import hashlib
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.stores.s3_server import S3

_TIME = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True)
class FolderServer:
    """The server, its folder, and what was asked: method and key of each request."""

    s3: S3
    folder: Path
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def folder_server(folder: Path) -> Iterator[FolderServer]:
    """Serve the folder until the block ends; a folder in it is a bucket."""
    requests: list[tuple[str, str]] = []
    turns = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing is printed."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path, query = self._asked()
            if "list-type" in query:
                self._answer(200, _listing(folder, path, query).encode())
                return
            if not path.is_file():
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                return
            data, etag = path.read_bytes(), _etag(path)
            start, stop, status = 0, len(data), 200
            if (span := self.headers.get("Range")) is not None:
                first, _, last = span.removeprefix("bytes=").partition("-")
                start = int(first) if first else max(0, len(data) - int(last))
                stop = min(int(last) + 1, len(data)) if first and last else len(data)
                status = 206
            headers = {"ETag": etag, "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            if status == 206:
                headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
            self._answer(status, data[start:stop], headers)

        def do_PUT(self) -> None:
            path, _ = self._asked()
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with turns:
                if self.headers.get("If-None-Match") == "*" and path.exists():
                    self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                    return
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            self._answer(200, b"", {"ETag": _etag(path)})

        def do_DELETE(self) -> None:
            path, _ = self._asked()
            path.unlink(missing_ok=True)
            self._answer(204, b"")

        def do_POST(self) -> None:
            path, _ = self._asked()
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            keys = [each.text or "" for each in ET.fromstring(body).iter() if _is_key(each.tag)]
            for key in keys:
                (path / key).unlink(missing_ok=True)
            deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
            self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

        def _asked(self) -> tuple[Path, dict[str, str]]:
            parts = urlsplit(self.path)
            key = unquote(parts.path).strip("/")
            requests.append((self.command, key))
            query = parse_qs(parts.query, keep_blank_values=True)
            return folder / key, {name: values[0] for name, values in query.items()}

        def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield FolderServer(S3(f"http://127.0.0.1:{server.server_port}"), folder, requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _is_key(tag: str) -> bool:
    return tag.rpartition("}")[2] == "Key"


def _etag(path: Path) -> str:
    return f'"{hashlib.md5(path.read_bytes()).hexdigest()}"'


def _listing(folder: Path, bucket: Path, query: dict[str, str]) -> str:
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    keys = sorted(str(p.relative_to(bucket)) for p in bucket.rglob("*") if p.is_file())
    contents, folders = [], set()
    for key in keys:
        if not key.startswith(prefix) or key <= query.get("start-after", ""):
            continue
        rest = key[len(prefix) :]
        if delimiter and delimiter in rest:
            folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            continue
        path = bucket / key
        contents.append(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_TIME}</LastModified>"
            f"<ETag>{escape(_etag(path))}</ETag><Size>{path.stat().st_size}</Size></Contents>"
        )
    common = "".join(
        f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
        for each in sorted(folders)
    )
    name = escape(str(bucket.relative_to(folder)))
    return (
        f"<ListBucketResult><Name>{name}</Name><IsTruncated>false</IsTruncated>"
        f"{''.join(contents)}{common}</ListBucketResult>"
    )
