"""The one spelling of places: every path has one URI, every URI one place."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import InvalidInput
from rowsieve.objects import Location, local_folder, open_store
from tests.odd_names import ODD_NAMES, PAIRS
from tests.profiles import examples

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=20
) | st.text(st.sampled_from(" %20aF?#+&~.:\\é\u0301\n"), min_size=1, max_size=8)
names = texts.filter(lambda name: name not in (".", ".."))
byte_names = st.binary(min_size=1, max_size=20).filter(
    lambda name: not {0, ord("/")} & set(name) and name not in (b".", b"..")
)


@examples(300)
@given(name=names)
def test_a_path_comes_back_from_its_uri(name: str) -> None:
    location = Location.local(f"/no-such-folder/{name}")
    assert location.path == f"/no-such-folder/{name}"
    assert location.uri.isascii()
    assert location.uri.isprintable()
    assert Location.parse(location.uri) == location
    assert Location.parse(location.path) == location
    assert Location.parse(Path(location.path)) == location
    assert unquote(location.uri) == f"file:///no-such-folder/{name}"


@examples(100)
@given(name=byte_names)
def test_a_path_of_any_bytes_comes_back_from_its_uri(name: bytes) -> None:
    path = os.fsdecode(b"/no-such-folder/" + name)
    location = Location.local(path)
    assert Location.parse(location.uri) == location
    assert os.fsencode(location.path) == b"/no-such-folder/" + name


@examples(300)
@given(names=st.tuples(names, names))
def test_two_paths_never_share_a_uri(names: tuple[str, str]) -> None:
    one, two = (Location.local(f"/no-such-folder/{name}") for name in names)
    assert (one.uri == two.uri) == (names[0] == names[1])


@examples(200)
@given(name=names, scheme=st.sampled_from(["memory", "s3", "gs", "abfss"]))
def test_a_key_comes_back_from_its_uri(name: str, scheme: str) -> None:
    authority = {"memory": "", "abfss": "container@account.dfs.core.windows.net"}
    location = Location(scheme, authority.get(scheme, "bucket"), f"folder/{name}")
    if scheme != "memory" and any(ord(c) < 32 or ord(c) == 127 for c in name):
        with pytest.raises(InvalidInput, match="control character"):
            Location.parse(location.uri)
    else:
        assert Location.parse(location.uri) == location


def test_there_are_200_odd_names_and_they_are_paths_taken_literally(tmp_path: Path) -> None:
    assert len(ODD_NAMES) >= 200
    uris = set()
    for name in ODD_NAMES:
        location = Location.parse(f"{tmp_path}/{name}")
        assert location == Location.parse(tmp_path / name)
        assert local_folder(location.uri) == tmp_path / name
        assert location.name == name
        uris.add(location.uri)
    assert len(uris) == len(ODD_NAMES)
    for one, two in PAIRS:
        assert Location.parse(tmp_path / one).uri != Location.parse(tmp_path / two).uri


def test_relative_names_are_taken_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ODD_NAMES:
        assert Location.parse(Path(name)).path == f"{tmp_path}/{name}"
        if name != "~":  # the home folder, as in a shell
            assert Location.parse(name).path == f"{tmp_path}/{name}"


def test_text_that_begins_with_a_tilde_is_the_home_folder_and_a_path_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    for text, path in {
        "~/t": "/home/me/t",
        "~": "/home/me",
        "./~": f"{tmp_path}/~",
        "~me": f"{tmp_path}/~me",
        "a/~/b": f"{tmp_path}/a/~/b",
    }.items():
        assert Location.parse(text).path == path
    assert Location.parse(Path("~/t")).path == f"{tmp_path}/~/t"


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("/a b", "file:///a%20b"),
        ("/a%20b", "file:///a%2520b"),
        ("file:///a b", "file:///a%20b"),
        ("file:///a%20b", "file:///a%20b"),
        ("file://localhost/a", "file:///a"),
        ("FILE:///%41", "file:///A"),
        ("file:////a", "file:///a"),
        ("//a/", "file:///a"),
        ("file:///a/%2E%2E/b", "file:///b"),
        ("file:///day=1/12:30,@", "file:///day=1/12:30,@"),
        ("memory://a/b", "memory:///a/b"),
        ("memory:///a%20b/", "memory:///a%20b"),
        ("memory:////a//b", "memory:///a/b"),
        ("s3://b", "s3://b"),
        ("s3://b/", "s3://b"),
        ("S3://b/a%2520b/c d", "s3://b/a%2520b/c%20d"),
        ("s3://b/a%2Fb", "s3://b/a/b"),
        ("s3://b/é", "s3://b/%C3%A9"),
        ("az://$web/t", "az://$web/t"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
    ],
)
def test_every_spelling_of_a_place_has_one_uri(written: str, uri: str) -> None:
    assert Location.parse(written).uri == uri
    assert Location.parse(uri).uri == uri


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("file:///a%00b", "NUL"),
        ("a\ud800", "lone surrogate"),
        ("file:///a\udcff", "lone surrogate"),
        ("file:///100%", "%25"),
        ("file:///%2", "%25"),
        ("file:///a?b", "%3F"),
        ("file:///a#b", "%23"),
        ("file:///a\nb", "%0A"),
        ("file://", "names no directory"),
        ("file://host/a", "names the host 'host'"),
        ("file:/a", "one slash"),
        ("S3:/bucket/t", "one slash"),
        (Path("s3://bucket/t"), "one slash"),
        ("ftp://host/t", "no store for scheme 'ftp'"),
        ("://x", "no store for scheme ''"),
        ("memory:///", "needs a name"),
        ("memory:///a/../b", "'.' or '..'"),
        ("memory:///a/%2e/b", "'.' or '..'"),
        ("s3://b/a//b", "two slashes"),
        ("s3://b/%FF", "not UTF-8"),
        ("s3://b/a%0Ab", "control character"),
        ("s3://b/a/%2E%2E/c", "'.' or '..'"),
        ("s3://b/a#b", "%23"),
        ("s3://b%20c/a", "names no bucket"),
        ("s3:///a", "names no bucket"),
        (b"/bytes", "is text"),
    ],
)
def test_text_that_names_no_place_or_could_name_two_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Location.parse(text)
    assert message in str(raised.value)
    str(raised.value).encode()


def test_a_folder_of_the_disk_is_asked_of_local_tables_only() -> None:
    assert local_folder("file:///a%20b") == Path("/a b")
    with pytest.raises(InvalidInput, match="not on the local disk"):
        local_folder("s3://bucket/t")


@pytest.mark.parametrize("secret", ["wJalr/K7MD", "wJalr?K7MD", "wJalr#K7MD", "wJalrK7MD"])
def test_no_part_of_a_password_in_a_uri_is_shown_whatever_characters_it_has(secret: str) -> None:
    for uri in (f"s3://user:{secret}@bucket/t", f"abfss://user:{secret}@account/t"):
        with pytest.raises(InvalidInput) as raised:
            Location.parse(uri)
        assert "wJalr" not in str(raised.value)
        assert "K7MD" not in str(raised.value)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("s3.access-key-id", "did you mean 'access_key_id'"),  # pyiceberg's
        ("AWS_S3_ALLOW_UNSAFE_RENAME", "leave them out"),  # deltalake's
        ("key", "such as endpoint, access_key_id"),  # s3fs's
    ],
)
def test_options_that_the_store_does_not_have_are_named(option: str, hint: str) -> None:
    options = {option: "secret value", "region": "eu-central-1"}
    with pytest.raises(InvalidInput) as raised:
        open_store("s3://bucket/t", options)
    assert f"{option!r} are not settings of this store" in str(raised.value)
    assert hint in str(raised.value)
    assert "region" not in str(raised.value).partition(";")[0]
    assert "secret value" not in str(raised.value)
