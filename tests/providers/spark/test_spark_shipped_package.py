"""A driver that has the package only among the files of its session registers the source."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from rowsieve.errors import InvalidInput
from rowsieve.providers.spark import register
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
DRIVER = """
import sys
from pyspark.sql import SparkSession

way, archive, place = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
if way == "pyFiles":
    builder = builder.config("spark.submit.pyFiles", archive)
spark = builder.config("spark.log.level", "OFF").getOrCreate()
if way == "addArtifact":
    spark.addArtifact(archive, pyfile=True)
    sys.path.insert(0, archive)

import pyarrow as pa
import rowsieve as rs
from rowsieve.providers.spark import register

assert rs.__file__.partition("rowsieve.zip")[1], rs.__file__
register(spark)
table = rs.create_table(place, pa.table({"id": [1, 2]}), key=["id"])
table.write_spark(spark.range(5, 8), "upsert", token=("job", 1))
print("rows", spark.read.format("rowsieve").load(table.uri).count(), table.to_spark(spark).count())
"""


def packed(place: Path) -> Path:
    """The package and the module by which Spark finds its source, as an archive."""
    with zipfile.ZipFile(place, "w") as archive:
        for path in [*ROOT.glob("rowsieve/**/*"), ROOT / "pyspark_rowsieve.py"]:
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, path.relative_to(ROOT))
    return place


def others(place: Path) -> Path:
    """A folder with every installed package but this one."""
    place.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "rowsieve" not in path.name:
            (place / path.name).symlink_to(path)
    return place


@pytest.mark.skipif(not IS_DEEP, reason="each way has a session of its own")
@pytest.mark.parametrize("way", ["pyFiles", "addArtifact"])
def test_a_package_that_was_only_sent_along_reads_and_writes(tmp_path: Path, way: str) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    python = getattr(sys, "_base_executable", sys.executable)
    environment = {
        **os.environ,
        "PYTHONPATH": str(others(tmp_path / "site")),
        "PYSPARK_PYTHON": python,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    archive = packed(tmp_path / "rowsieve.zip")
    done = subprocess.run(
        [python, str(driver), way, str(archive), str(tmp_path / "t")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "rows 5 5" in done.stdout, done.stderr[-3000:]


def test_only_a_session_is_registered() -> None:
    with pytest.raises(InvalidInput, match="must be a SparkSession, not str"):
        register("spark")
