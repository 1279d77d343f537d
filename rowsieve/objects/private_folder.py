"""A folder that no other user of the machine can change, nor put another one in its place.

What is in a cache is checked against checksums that anybody can compute. So it is believed only
where nobody else can write: else another user could plant rows that a table never had.
"""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)
_MODE: Final = 0o700
_WRITABLE_BY_OTHERS: Final = 0o022
_ROOT: Final = 0


def is_private(folder: Path, *names: str) -> bool:
    """Return whether only this user can change the folder and its folders of these names.

    Creates those that are absent, for this user alone. A warning is logged if the answer is no.
    """
    with suppress(OSError):  # what is there is judged all the same: others may have made it
        folder.mkdir(mode=_MODE, parents=True, exist_ok=True)
        for name in names:
            (folder / name).mkdir(mode=_MODE, exist_ok=True)
    problems = [*map(_problem_of_parent, _with_ancestors(folder))]
    problems += [_problem(folder / name) for name in names]
    problem = next((each for each in problems if each), None)
    if problem is not None:
        _log.warning(
            "cache_dir %s is not used: %s, so that other users could change what is read; give a "
            "folder of your own, with mode 700",
            folder,
            problem,
        )
    return problem is None


def _problem(folder: Path) -> str | None:
    try:
        status = folder.lstat()
    except NotADirectoryError:
        return None  # the parent is a file: nothing can be below it
    except OSError as error:
        return _unknown(folder, error)
    if not stat.S_ISDIR(status.st_mode):
        return (
            f"{folder} is a link" if stat.S_ISLNK(status.st_mode) else f"{folder} is not a folder"
        )
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to user {status.st_uid}"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"{folder} is writable by others"
    return None


def _with_ancestors(folder: Path) -> list[Path]:
    """The folder and all that lead to it, by its path and by where links of that lead.

    Whoever can change one of them can put another folder in its place.
    """
    absolute = folder.absolute()
    real = Path(os.path.realpath(folder))
    return list(dict.fromkeys([absolute, *absolute.parents, real, *real.parents]))


def _problem_of_parent(folder: Path) -> str | None:
    """In a folder such as /tmp, whose sticky bit is set, others cannot rename what is ours."""
    try:
        status = folder.stat()
    except NotADirectoryError:
        return None
    except OSError as error:
        return _unknown(folder, error)
    if status.st_uid not in (os.geteuid(), _ROOT):
        return f"{folder} belongs to user {status.st_uid}"
    if status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
        return f"{folder} is writable by others"
    return None


def _unknown(folder: Path, error: OSError) -> str:
    """Of a folder that is not there for us: another user could create it."""
    return f"{folder} cannot be created or looked at ({type(error).__name__})"
