"""The folder of a publication: names of its files in metadata, and inside the folder."""

from __future__ import annotations

from dataclasses import dataclass

from rowsieve.errors import CorruptData, UnsupportedOperation
from rowsieve.objects import Location, ObjectNotFound, ObjectStore, table_uri_of


def location_of(uri: str) -> str:
    """A table's folder as Iceberg names it: not percent-encoded, a plain path on local disk."""
    location = Location.parse(table_uri_of(uri))
    if location.scheme == "file":
        return location.path
    return f"{location.scheme}://{location.authority}/{location.path}"


def stored_file(store: ObjectStore, path: str, span: tuple[int, int] | None = None) -> bytes:
    """Read a file that metadata names, or a span of it; CorruptData if the file is missing."""
    try:
        return store.get(path) if span is None else store.get_range(path, *span)
    except ObjectNotFound as error:
        raise CorruptData(
            f"publish: {path} in {store.uri} is missing, but metadata there refers to it; restore "
            "it from a copy, or publish into another folder"
        ) from error


def check_unmoved(store: ObjectStore, published: str, now: str) -> None:
    """Raise UnsupportedOperation if files that metadata names have another place now.

    Their names would be wrong, and unchanged files would be missing under their new names.
    """
    if published != now:
        raise UnsupportedOperation(
            f"publish: the metadata in {store.uri} names files in {published}, which are in {now} "
            "now: a folder was moved or copied; call unpublish for this place, and publish again, "
            "or publish into another folder"
        )


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that metadata is written into; `root` is its absolute name."""

    store: ObjectStore
    root: str

    @classmethod
    def of(cls, store: ObjectStore) -> Folder:
        """The folder of a store."""
        return cls(store, location_of(store.uri))

    def location(self, path: str) -> str:
        """The absolute name of a file."""
        return f"{self.root}/{path}"

    def relative(self, location: str) -> str:
        """The path of a file by its absolute name; CorruptData for one of another folder."""
        prefix = f"{self.root}/"
        if not location.startswith(prefix):
            raise CorruptData(
                f"publish: the metadata in {self.store.uri} refers to {location}, which is in "
                "another folder; was the folder moved? Publish into an empty one"
            )
        return location.removeprefix(prefix)
