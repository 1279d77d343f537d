"""Delta tables whose log begins with a V2 checkpoint and its sidecar, as the protocol has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs

ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
FEATURE, TIMES = "v2Checkpoint", "inCommitTimestamp"


def actions_of(log: Path) -> list[list[dict[str, Any]]]:
    """The actions of each commit, in order."""
    commits = sorted(log.glob("*.json"))
    return [[json.loads(line) for line in each.read_text().splitlines()] for each in commits]


def write_checkpoint(log: Path, *, with_times: bool) -> None:
    """Replace the log by its last commit and a checkpoint of it, whose files are in a sidecar."""
    commits = actions_of(log)
    adds: dict[str, dict[str, Any]] = {}
    for action in (action for commit in commits for action in commit):
        if "add" in action:
            adds[action["add"]["path"]] = action["add"]
        adds.pop(action.get("remove", {}).get("path"), None)
    features = [FEATURE, TIMES] if with_times else [FEATURE]
    protocol = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [FEATURE],
            "writerFeatures": features,
        }
    }
    metadata = next(action["metaData"] for action in commits[0] if "metaData" in action)
    metadata["configuration"] = {"delta.enableInCommitTimestamps": str(with_times).lower()}
    (log / "_sidecars").mkdir()
    sidecar = log / "_sidecars" / "b7a1.parquet"
    rows = [
        {**{each.name: add.get(each.name) for each in ADD}}
        | {"partitionValues": list(add["partitionValues"].items())}
        for add in adds.values()
    ]
    pq.write_table(pa.table({"add": pa.array(rows, ADD)}), sidecar)
    size, last = sidecar.stat().st_size, len(commits) - 1
    written = [
        {"checkpointMetadata": {"version": last}},
        protocol,
        {"metaData": metadata},
        {"sidecar": {"path": sidecar.name, "sizeInBytes": size, "modificationTime": 1}},
    ]
    checkpoint = f"{last:020d}.checkpoint.8e3d8d2a-2b0a-4a5c-9a0f-3f2b7f1c0a11.json"
    (log / checkpoint).write_text("\n".join(map(json.dumps, written)))
    hint = {"version": last, "size": len(written), "v2Checkpoint": {"path": checkpoint}}
    (log / "_last_checkpoint").write_text(json.dumps(hint))
    newest = sorted(commits[-1], key=lambda action: "commitInfo" not in action)
    if with_times:
        newest[0]["commitInfo"][TIMES] = 1_700_000_000_000
    for commit in sorted(log.glob("*.json")):
        if commit.name != checkpoint:
            commit.unlink()
    lines = "\n".join(map(json.dumps, [*newest, protocol]))
    (log / f"{last:020d}.json").write_text(lines)


@pytest.mark.parametrize("with_times", [False, True])
def test_a_v2_checkpoint_with_a_sidecar_is_read(tmp_path: Path, *, with_times: bool) -> None:
    uri = str(tmp_path / "t")
    deltalake.write_deltalake(uri, pa.table({"k": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    deltalake.write_deltalake(uri, pa.table({"k": [3], "p": ["a"]}), mode="append")
    deltalake.DeltaTable(uri).delete("k = 2")
    write_checkpoint(tmp_path / "t" / "_delta_log", with_times=with_times)
    rows = [{"k": 1, "p": "a"}, {"k": 3, "p": "a"}]
    assert rs.from_delta(uri).to_arrow().sort_by("k").to_pylist() == rows
    imported = rs.import_delta(uri, str(tmp_path / "imported"))
    assert imported.to_arrow().sort_by("k").to_pylist() == rows
