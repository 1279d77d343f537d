"""A real S3 server on loopback: moto's, which speaks the protocol that obstore's client speaks.

moto looks whether a name is taken and then stores, in two steps; S3 does both at once. So puts take
turns here.
"""

from __future__ import annotations

import threading
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

BUCKET = "tables"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@dataclass(frozen=True, slots=True)
class S3:
    """Where a server is, and how tables on it are opened."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """`storage_options`, in the form that every caller takes."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "AKIAIOSFODNN7EXAMPLE",
            "secret_access_key": SECRET,
            "allow_http": "true",
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as variables of the environment, for tests that pass no options."""
        return {f"AWS_{name.upper()}": value for name, value in self.options.items()}

    def at(self, endpoint: str) -> S3:
        """The same server through a proxy."""
        return S3(endpoint)

    def fresh_uri(self) -> str:
        """A table that nobody has made."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@contextmanager
def s3_server() -> Iterator[S3]:
    """A server on a free port of loopback, with an empty bucket; it ends with the block."""
    from moto.moto_server.werkzeug_app import create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept

        def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
            """Nothing is printed."""

    # Its dispatcher would look through the folders of all services for each request.
    application = _Turns(create_backend_app("s3"))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        made = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made, timeout=30).close()
        yield S3(endpoint)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Turns:
    """The application, with one put at a time."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] != "PUT":
            return self._application(environ, start_response)
        with self._lock:
            return self._application(environ, start_response)
