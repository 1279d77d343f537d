"""Actions of ALTER TABLE that set and unset properties."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql.dialects import DIALECTS, dialect_named
from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.statements.setting_actions import SettingsChange, read_settings_change


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("actions", "change"),
    [
        ("SET TBLPROPERTIES ('a.b' = 'x''y')", SettingsChange({"a.b": "x'y"})),
        ("set tblproperties(a = 1.5, b = TRUE, c = -2)", {"a": "1.5", "b": "true", "c": "-2"}),
        ("UNSET TBLPROPERTIES ('a', b)", SettingsChange({}, ("a", "b"))),
        ("UNSET TBLPROPERTIES IF EXISTS (a)", SettingsChange({}, ("a",), if_exists=True)),
        (
            "SET PROPERTIES a = 'x', b = DEFAULT, c = ARRAY['p', 'q']",
            SettingsChange({"a": "x", "c": '["p","q"]'}, ("b",), if_exists=True),
        ),
        ("ADD COLUMN set int", None),
        ("SET NOT NULL", None),
    ],
)
def test_properties_are_read(
    dialect: str, actions: str, change: SettingsChange | dict[str, str] | None
) -> None:
    wanted = SettingsChange(change) if isinstance(change, dict) else change
    assert read_settings_change(actions, dialect_named(dialect)) == wanted


@pytest.mark.parametrize(
    "actions",
    [
        "SET TBLPROPERTIES",
        "SET TBLPROPERTIES ()",
        "SET TBLPROPERTIES ('a')",
        "SET TBLPROPERTIES ('a' = b)",
        "SET TBLPROPERTIES ('a' = 'b', 'a' = 'c')",
        "SET TBLPROPERTIES ('a' = 'b'), ADD COLUMN c int",
        "UNSET TBLPROPERTIES ('a' = 'b')",
        "SET PROPERTIES a 'b'",
        "SET TBLPROPERTIES ('a' = 'b'); DROP TABLE t",
    ],
)
def test_other_actions_are_refused(actions: str) -> None:
    with pytest.raises(RowsieveError):
        read_settings_change(actions, dialect_named("postgres"))


def test_a_statement_sets_properties_of_a_table() -> None:
    table = rs.create_table(f"memory:///{uuid.uuid4()}", pa.schema([("n", pa.int64())]))
    expires = "SET TBLPROPERTIES ('expire_rows_when' = 'n > 5', late_horizon = '3 days')"
    assert table.sql(f"ALTER TABLE this {expires}").operation == "set_properties"
    properties = table.handle.pinned.table.properties
    assert (properties["expire_rows_when"], properties["late_horizon"]) == ("n > 5", "3 days")
    table.sql("ALTER TABLE this SET PROPERTIES expire_rows_when = DEFAULT, late_horizon = '4 days'")
    assert table.handle.pinned.table.properties == {"late_horizon": "4 days"}
    table.sql("ALTER TABLE this UNSET TBLPROPERTIES (late_horizon)")
    assert table.handle.pinned.table.properties == {}
    for actions in ("SET PROPERTIES nothing = 1", "UNSET TBLPROPERTIES ('nothing')"):
        with pytest.raises(InvalidInput, match="unknown table property 'nothing'"):
            table.sql(f"ALTER TABLE this {actions}")
