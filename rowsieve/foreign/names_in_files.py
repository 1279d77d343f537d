"""Match names of columns that differ only in case: one column in Spark and Hive, two in Parquet.

Soundness: a column is looked up by its exact name, or else by the only name that differs in case.
Where files spell a name differently and nobody says whether it is one column, it is an error:
values would be NULL in half of the files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from rowsieve.errors import SchemaMismatch
from rowsieve.foreign.footers import Footer


def names_in_file(wanted: Collection[str], footer: Footer) -> dict[str, str]:
    """The file's column of each wanted name that it has; SchemaMismatch if two columns fit."""
    return matched_names(wanted, footer.schema.names, footer.uri)


def matched_names(wanted: Collection[str], names: Sequence[str], where: str) -> dict[str, str]:
    """The same of any names of columns, or of the fields of a struct, which lie at `where`."""
    matches = {name: name for name in wanted if name in names}
    folded: dict[str, list[str]] = {}
    for name in names:
        if name not in matches:
            folded.setdefault(name.lower(), []).append(name)
    for name in wanted:
        others = folded.get(name.lower(), [])
        if name in matches or not others:
            continue
        if len(others) > 1:
            raise SchemaMismatch(
                f"{where} has no column {name!r}, but {' and '.join(map(repr, others))}, "
                "which differ from it only in case; name the one to read, exactly"
            )
        matches[name] = others[0]
    return matches


def refuse_other_case(paths_by_file: Mapping[str, Iterable[str]]) -> None:
    """Raise SchemaMismatch if files spell a column, or a field inside one, in different cases.

    `paths_by_file`: the paths of the columns and fields of each file, by its URI. Two names are two
    columns if a file has both, and the other files have no reason to say otherwise.
    """
    if len(paths_by_file) < 2:
        return
    files: dict[str, dict[str, list[str]]] = {}
    for uri, paths in paths_by_file.items():
        for path in paths:
            files.setdefault(path.lower(), {}).setdefault(path, []).append(uri)
    for spellings in files.values():
        for (one, has_one), (two, has_two) in combinations(spellings.items(), 2):
            only_one = next((uri for uri in has_one if uri not in has_two), None)
            only_two = next((uri for uri in has_two if uri not in has_one), None)
            if only_one is not None and only_two is not None:
                raise SchemaMismatch(
                    f"the name {one!r} in {only_one} and {two!r} in {only_two} differ only in "
                    "case; name one of them in schema= to read them as one column, or both to "
                    "keep them apart"
                )
