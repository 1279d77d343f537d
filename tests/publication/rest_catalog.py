"""A server of Iceberg's REST catalog for one namespace, on loopback.

It applies a commit's steps as pyiceberg does, and numbers new schemas itself, as the catalogs in
Java do. `others` are called before a commit is applied: what another client does in between.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

_TABLES = "/v1/namespaces/db/tables/"


class RestServer:
    """The tables of the namespace `db`: the place of the metadata file of each."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.commits = 0
        self.others: list[Callable[[], object]] = []
        self.lost_answers = 0

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """The status and the content for a request."""
        if path.startswith("/v1/config"):
            return 200, {"defaults": {}, "overrides": {}}
        if path == "/v1/namespaces/db/register":
            if body["name"] in self.places:
                return _error(409, "AlreadyExistsException")
            self.places[body["name"]] = body["metadata-location"]
            return 200, self.shown(body["name"])
        if not path.startswith(_TABLES):
            return _error(404, "NoSuchNamespaceException")
        name = path.removeprefix(_TABLES)
        if name not in self.places:
            return _error(404, "NoSuchTableException")
        return (200, self.shown(name)) if body is None else self.commit(name, body)

    def shown(self, name: str) -> Any:
        place = self.places[name]
        metadata = json.loads(Path(place).read_text("utf-8"))
        return {"metadata-location": place, "metadata": metadata, "config": {}}

    def commit(self, name: str, body: Any) -> tuple[int, Any]:
        while self.others:
            self.others.pop()()
        base = TableMetadataUtil.parse_obj(self.shown(name)["metadata"])
        for each in body["requirements"]:
            try:
                TypeAdapter(TableRequirement).validate_python(each).validate(base)
            except Exception:
                return _error(409, "CommitFailedException")
        numbers = iter(range(max(each.schema_id for each in base.schemas) + 1, 1_000))
        for step in body["updates"]:
            if step["action"] == "add-schema":
                step["schema"]["schema-id"] = next(numbers)
        steps = [TypeAdapter(TableUpdate).validate_python(each) for each in body["updates"]]
        new = update_table_metadata(base, tuple(steps), metadata_location=self.places[name])
        folder = Path(new.properties["write.metadata.path"])
        folder.mkdir(parents=True, exist_ok=True)
        self.commits += 1
        place = folder / f"{self.commits:05}-{uuid.uuid4()}.metadata.json"
        place.write_text(BaseModel.model_dump_json(new, by_alias=True, exclude_none=True), "utf-8")
        self.places[name] = str(place)
        if self.lost_answers:
            self.lost_answers -= 1
            return _error(504, "GatewayTimeout")
        return 200, self.shown(name)


def _error(status: int, kind: str) -> tuple[int, Any]:
    return status, {"error": {"message": kind, "type": kind, "code": status}}


@contextmanager
def rest_catalog() -> Iterator[tuple[RestServer, RestCatalog]]:
    """Serve a catalog, and open it."""
    state = RestServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(None)

        def do_POST(self) -> None:
            self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def reply(self, body: Any) -> None:
            status, content = state.answer(self.path.partition("?")[0], body)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing on standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield state, RestCatalog("rest", uri=f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()
