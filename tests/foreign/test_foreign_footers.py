"""Footers that other writers make, or that are damaged: read or refused by name, no abort."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import rowsieve as rs
from rowsieve.parquet.thrift import I32, I64, encoded_value
from rowsieve.varints import encode_varint
from tests.foreign import damaged
from tests.foreign.damaged import MAX, MIN, NULLS, nulls

ROWS = pa.table({"id": pa.array(range(40), pa.int64()), "text": [f"t{i:02}" for i in range(40)]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    pq.write_table(ROWS, path, row_group_size=10, use_dictionary=False, write_page_index=True)
    return path


def set_field(number: int, value: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        def of_chunk(_: int, leaf: int, metadata: damaged.Fields) -> None:
            if leaf == 1:
                metadata[number] = encoded_value(value)

        damaged.edit_metadata(path, of_chunk)

    return change


def exchanged(path: Path) -> None:
    """Exchange the two columns in the second row group, as their paths say, too."""

    def of_group(number: int, group: damaged.Fields) -> None:
        kind, data = group[damaged.COLUMNS]
        chunks: list[damaged.Fields] = []
        damaged.edit_list(data, lambda _, chunk: chunks.append(dict(chunk)))
        if number == 1:
            group[damaged.COLUMNS] = (
                kind,
                data[:1] + b"".join(map(damaged.struct_of, reversed(chunks))),
            )

    def of_footer(footer: damaged.Fields) -> None:
        kind, data = footer[damaged.ROW_GROUPS]
        footer[damaged.ROW_GROUPS] = kind, damaged.edit_list(data, of_group)

    damaged.edit_footer(path, of_footer)


def fewer_rows(path: Path) -> None:
    """Count fewer rows in the second row group than its columns have values."""

    def of_group(number: int, group: damaged.Fields) -> None:
        if number == 1:
            group[3] = encoded_value(I64(3))

    def of_footer(footer: damaged.Fields) -> None:
        kind, data = footer[damaged.ROW_GROUPS]
        footer[damaged.ROW_GROUPS] = kind, damaged.edit_list(data, of_group)

    damaged.edit_footer(path, of_footer)


def footer_field(number: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        data = path.read_bytes()
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        header = b"\x08" + encode_varint(number << 1 ^ number >> 63)
        footer = data[start:-9] + header + b"\x02hi" + b"\0"
        path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")

    return change


def type_of_the_row(path: Path) -> None:
    """Give the schema's root a physical type, as some writers in Go do."""

    def of_element(number: int, element: damaged.Fields) -> None:
        if number == 0:
            element[1] = encoded_value(I32(2))

    def of_footer(footer: damaged.Fields) -> None:
        kind, elements = footer[2]
        footer[2] = kind, damaged.edit_list(elements, of_element)

    damaged.edit_footer(path, of_footer)


READ: dict[str, Callable[[Path], None]] = {
    "a filter without a length": set_field(14, I64(4)),
    "a negative field number, as of Photon": footer_field(-16_384),
    "an extension at the greatest field number": footer_field(32_767),
    "sizes that do not fit the type": set_field(16, {1: I64(5), 3: [I64(1)] * 7}),
    "statistics of a geometry": set_field(17, {1: {}}),
    "a type of the whole row": type_of_the_row,
    "a field that nobody knows": set_field(900, b"hi"),
    "short bounds": lambda path: damaged.set_statistics(path, 0, {MIN: b"1", MAX: b"22"}),
    "NULLs below zero": lambda path: damaged.set_statistics(path, 0, {NULLS: nulls(-9)}),
}


@pytest.mark.parametrize("change", READ.values(), ids=READ)
def test_footers_that_others_read_are_read(change: Callable[[Path], None], path: Path) -> None:
    change(path)
    table = rs.open_parquet(path)
    assert table.count() == 40
    for condition, count in (("id = 7", 1), ("text >= 't37'", 3), ("id IS NULL", 0)):
        assert table.scan(condition).to_arrow().num_rows == count, condition
    assert rs.from_parquet(path, path.parent / "table").count("text = 't21'") == 1


def test_a_group_without_fields_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), path)

    def change(footer: damaged.Fields) -> None:
        kind, data = footer[2]
        elements: list[damaged.Fields] = []
        damaged.edit_list(data, lambda _, fields: elements.append(fields))
        elements[0][5] = encoded_value(I32(3))
        empty = {3: encoded_value(I32(1)), 4: encoded_value(b"nothing"), 5: encoded_value(I32(0))}
        elements.insert(1, empty)
        head = bytes([len(elements) << 4 | 12])
        footer[2] = kind, head + b"".join(map(damaged.struct_of, elements))

    damaged.edit_footer(path, change)
    table = rs.open_parquet(path)
    assert table.schema.names == ["a", "b"]
    assert table.scan("a = 2").to_arrow().to_pylist() == [{"a": 2, "b": "y"}]


def test_the_rows_are_those_of_the_row_groups(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def change(footer: damaged.Fields) -> None:
        footer[3] = encoded_value(I64(7))

    damaged.edit_footer(path, change)
    with caplog.at_level(logging.WARNING, "rowsieve"):
        table = rs.open_parquet(path)
    assert "says that it has 7 rows, and its row groups have 40" in caplog.text
    assert table.count() == len(table.to_arrow()) == 40


def test_more_rows_than_can_be_numbered_are_refused_by_name(path: Path) -> None:
    """A scan would cut them into slices without end."""

    def of_group(number: int, group: damaged.Fields) -> None:
        if number == 1:
            group[3] = encoded_value(I64(2**50))

    def of_footer(footer: damaged.Fields) -> None:
        kind, data = footer[damaged.ROW_GROUPS]
        footer[damaged.ROW_GROUPS] = kind, damaged.edit_list(data, of_group)

    damaged.edit_footer(path, of_footer)
    for call in (rs.open_parquet, lambda file: rs.from_parquet(file, path.parent / "table")):
        with pytest.raises(rs.errors.UnsupportedOperation, match=r"a\.parquet has .* rows"):
            call(path)


class _Keys(pe.KmsClient):  # type: ignore[misc]
    def wrap_key(self, key_bytes: bytes, _: str) -> bytes:
        return base64.b64encode(key_bytes)


def test_encrypted_columns_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    factory = pe.CryptoFactory(lambda _: _Keys())
    properties = factory.file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(
            footer_key="f", column_keys={"c": ["text"]}, plaintext_footer=True
        ),
    )
    with pq.ParquetWriter(path, ROWS.schema, encryption_properties=properties) as writer:
        writer.write_table(ROWS)
    with pytest.raises(rs.errors.UnsupportedOperation, match=r"a\.parquet.*'text' is encrypted"):
        rs.open_parquet(path)


REFUSED: dict[str, Callable[[Path], None]] = {
    "a chunk without its codec": lambda path: damaged.edit_metadata(
        path, lambda _, __, metadata: metadata.pop(4, None) and None
    ),
    "a chunk that lies before the file": set_field(9, I64(-5)),
    "fewer values than none": set_field(5, I64(-1)),
    "a codec that nobody knows": set_field(4, I32(99)),
    "a chunk of another type than its column": set_field(1, I32(1)),
    "fewer rows than values": fewer_rows,
    "a chunk in another file": lambda path: damaged.edit_chunks(
        path, lambda _, __, chunk: chunk.update({1: encoded_value(b"elsewhere.parquet")})
    ),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_footers_that_cannot_be_read_are_refused_by_name(
    change: Callable[[Path], None], path: Path
) -> None:
    change(path)
    with pytest.raises(
        (rs.errors.CorruptData, rs.errors.UnsupportedOperation), match=r"a\.parquet"
    ):
        rs.open_parquet(path)


def test_columns_in_another_order_than_the_schema_are_refused_by_name(tmp_path: Path) -> None:
    """A decoder takes chunks by their place: it would exchange columns of one type silently."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(6), "b": range(6, 12)}), path, row_group_size=2)
    exchanged(path)
    assert pq.read_table(path)["a"].to_pylist() == [0, 1, 8, 9, 4, 5]
    with pytest.raises(
        rs.errors.UnsupportedOperation, match=r"a\.parquet.*'b' in the place of 'a'"
    ):
        rs.open_parquet(path)


@pytest.mark.parametrize("number", range(1, 11))
def test_a_schema_element_whose_field_has_another_kind_is_refused(
    number: int, tmp_path: Path
) -> None:
    """A decoder skips the field: it would read an optional column as a required one."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"d": pa.array([None, 1], pa.decimal128(20, 2))}), path)
    other = {5: 4, 8: 11, 12: 9}  # I16, a set of bytes that ends at once, a list

    def change(footer: damaged.Fields) -> None:
        def of_element(place: int, fields: damaged.Fields) -> None:
            if place == 1:
                kind, data = fields.get(number, (5, b"\2"))
                fields[number] = (other[kind], data if kind == 5 else b"\3")

        kind, data = footer[2]
        footer[2] = kind, damaged.edit_list(data, of_element)

    damaged.edit_footer(path, change)
    with pytest.raises(rs.errors.CorruptData, match=r"a\.parquet"):
        rs.open_parquet(path)


def test_columns_that_are_optional_by_a_boolean_are_read(tmp_path: Path) -> None:
    """As by fastparquet with has_nulls="infer"; other readers skip the field, and misread NULLs."""
    path = tmp_path / "a.parquet"
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("s", pa.string())])
    rows = pa.table({"a": [1, 2, 3], "s": ["x", None, "z"]}, schema=schema)
    pq.write_table(rows, path, use_dictionary=False, store_schema=False)

    def of_element(place: int, fields: damaged.Fields) -> None:
        if place:
            fields[3] = (1, b"") if fields[3] == encoded_value(I32(1)) else (2, b"")

    damaged.edit_schema(path, of_element)
    for table in (rs.open_parquet(path), rs.from_parquet(path, tmp_path / "table")):
        assert table.to_arrow().to_pylist() == rows.to_pylist()
        assert (table.count("s IS NULL"), table.count("s = 'z'"), table.count("a = 2")) == (1, 1, 1)


CONTRADICTIONS = {
    "as many NULLs as rows, and bounds": {
        NULLS: nulls(10),
        MIN: b"\0" * 8,
        MAX: b"\x63" + b"\0" * 7,
    },
    "more NULLs than rows": {NULLS: nulls(11), MIN: b"\0" * 8, MAX: b"\0" * 8},
}


@pytest.mark.parametrize("claimed", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_claims_that_contradict_each_other_are_unknown(
    claimed: dict[int, bytes], path: Path
) -> None:
    # invariant 45
    damaged.set_statistics(path, 0, claimed)
    for table in (rs.open_parquet(path), rs.from_parquet(path, path.parent / "table")):
        for condition, count in (("id IS NULL", 0), ("id IS NOT NULL", 40), ("id = 39", 1)):
            assert table.count(condition) == count
            assert table.scan(condition).to_arrow().num_rows == count


def test_bounds_of_booleans_are_zero_or_one(tmp_path: Path) -> None:
    """A decoder takes another byte for true."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"b": [True, False, None]}), path)
    damaged.set_statistics(path, 0, {MIN: b"\7", MAX: b"\7", NULLS: nulls(1)})
    for table in (rs.open_parquet(path), rs.from_parquet(path, tmp_path / "table")):
        for condition in ("b = FALSE", "b <> TRUE", "b"):
            assert table.count(condition) == 1, condition


def test_null_counts_of_required_columns_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"id": [1, 2, 3]}, schema=schema), path)
    damaged.set_statistics(path, 0, {NULLS: nulls(3)})
    table = rs.open_parquet(path)
    assert (table.count("id IS NOT NULL"), table.count("id IS NULL")) == (3, 0)
