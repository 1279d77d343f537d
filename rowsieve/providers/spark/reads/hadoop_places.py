"""The names that Hadoop's file systems have for the folder of a table.

| our scheme | Hadoop's | from the package |
|---|---|---|
| `s3`, `s3a` | `s3a`, else `s3` | hadoop-aws |
| `gs` | `gs` | gcs-connector |
| `az`, `azure`, `adl`, `abfs`, `abfss` | `abfss` | hadoop-azure |
| `file` | `file` | Spark itself |

The table property `spark.path` and the argument `spark_path` of a read name a folder whose name is
another one in Spark: a mount, or a file system that only Spark has, such as `hdfs`.

Soundness: a name is only a claim; `store_access` compares what Spark finds there with the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rowsieve.objects import Location
from rowsieve.properties import check_properties

PROPERTY: Final = "spark.path"
_AZURE_HOST: Final = "dfs.core.windows.net"
_ACCOUNTS: Final = ("account_name", "azure_storage_account_name", "azure_account_name")
_ELSEWHERE: Final = ("endpoint", "azure_endpoint", "azure_storage_endpoint", "use_emulator")


@dataclass(frozen=True, slots=True)
class HadoopPlace:
    """A folder by the name that Hadoop has for it: the scheme, and the URI without a slash.

    `package` brings the file system of the scheme; `settings` begin the names of its settings.
    """

    scheme: str
    root: str
    package: str = ""
    settings: str = ""


def given_place(path: str) -> HadoopPlace:
    """The folder that a property or an argument names; InvalidInput if it is not a plain one."""
    check_properties({PROPERTY: path})
    scheme = path.partition(":/")[0].lower() if ":/" in path else ""
    return HadoopPlace(scheme, path.rstrip("/"))


def places_of(location: Location, options: Mapping[str, str]) -> list[HadoopPlace]:
    """The names to try, the most likely first; none if nothing says where Spark finds it."""
    place = f"{location.authority}/{location.path}"
    match location.scheme:
        case "file":
            return [HadoopPlace("file", f"file:{location.path.rstrip('/')}")]
        case "s3" | "s3a":
            return [
                HadoopPlace(scheme, f"{scheme}://{place}", "hadoop-aws", f"fs.{scheme}.")
                for scheme in ("s3a", "s3")
            ]
        case "gs":
            return [HadoopPlace("gs", f"gs://{place}", "gcs-connector", "fs.gs.")]
        case "az" | "azure" | "adl" | "abfs" | "abfss":
            if (host := _azure_host(location.authority, options)) is None:
                return []
            root = f"abfss://{host}/{location.path}"
            return [HadoopPlace("abfss", root, "hadoop-azure", "fs.azure.")]
    return []


def _azure_host(authority: str, options: Mapping[str, str]) -> str | None:
    """The container and the host of its account; None if the options do not say which."""
    if "@" in authority:
        return authority
    named = {name.lower(): value for name, value in options.items()}
    account = next((named[name] for name in _ACCOUNTS if named.get(name)), None)
    if account is None or any(named.get(name) for name in _ELSEWHERE):
        return None
    return f"{authority}@{account}.{_AZURE_HOST}"
