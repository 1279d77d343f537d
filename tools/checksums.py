"""The file of checksums of a release, and its signature by a key of OpenSSH.

Whoever downloads a release checks the signature first, then the files. The key is that of whoever
makes the release, and never in the project: without one, the checksums stay unsigned.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

NAME: Final = "SHA256SUMS"
PURPOSE: Final = "rowsieve-release"
"""The namespace of the signature: a signature made for anything else is not taken for one."""


class SignatureRefused(Exception):
    """The signature is missing, of another key, of another purpose, or of other checksums."""


def write(folder: Path, files: Iterable[Path]) -> Path:
    """Write the checksums of the files beside them, as `sha256sum --check` reads them."""
    lines = [f"{digest(file)}  {file.name}\n" for file in sorted(files)]
    path = folder / NAME
    path.write_text("".join(lines), "utf-8")
    return path


def digest(file: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def mismatches(checksums: Path) -> list[str]:
    """Return the names of files that are missing or have other contents."""
    pairs = [line.split("  ", 1) for line in checksums.read_text("utf-8").splitlines()]
    files = [(expected, checksums.parent / name) for expected, name in pairs]
    return [file.name for expected, file in files if not file.exists() or digest(file) != expected]


def sign(checksums: Path, key: Path) -> Path:
    """Sign the checksums with a private key; return the signature, which lies beside them."""
    signature = checksums.with_name(f"{checksums.name}.sig")
    signature.unlink(missing_ok=True)
    _run("ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", PURPOSE, str(checksums))
    return signature


def verify(checksums: Path, signers: Path, signer: str) -> None:
    """Check the signature against the file of allowed signers; SignatureRefused if it is none."""
    signature = checksums.with_name(f"{checksums.name}.sig")
    if not signature.exists():
        raise SignatureRefused(f"{checksums} has no signature {signature.name} beside it")
    command = ("ssh-keygen", "-Y", "verify", "-q", "-f", str(signers), "-I", signer)
    _run(*command, "-n", PURPOSE, "-s", str(signature), text=checksums.read_bytes())


def _run(*command: str, text: bytes = b"") -> None:
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        raise SignatureRefused(f"{' '.join(command)[:200]} failed: {output.strip()}")
