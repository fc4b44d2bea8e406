# SPDX-License-Identifier: BSD-2-Clause
"""Reads files with checksums, and verifies who signed them.

FreeBSD publishes such a file for each release and architecture on its web site, signed in clear text. GnuPG
verifies it, in a directory of its own that knows no key but those that the administrator gives. What cannot be verified
is refused.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from images.errors import ImageError, SignatureError

if TYPE_CHECKING:
    from collections.abc import Sequence

# `SHA512 (FILE) = HEX` as FreeBSD's sha512(1) writes it, and `HEX  FILE` as GNU's sha512sum does.
_LINES = (
    re.compile(r"SHA512 \((?P<file>[^()\s]+)\) = (?P<value>[0-9a-f]{128})"),
    re.compile(r"(?P<value>[0-9a-f]{128}) [ *](?P<file>\S+)"),
)
_FINGERPRINT = re.compile(r"[0-9A-F]{40}|[0-9A-F]{64}")
_STRONG = {"8", "9", "10"}
"""SHA-256, SHA-384 and SHA-512, as OpenPGP numbers the digests of signatures. SHA-1 and MD5 can be forged."""
_REFUSED = ("BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG")


def value_of(text: str, file: str) -> str:
    """Return the SHA-512 of a file, in hexadecimal; ImageError unless the text has exactly one."""
    found = set()
    for line in text.splitlines():
        for pattern in _LINES:
            if (match := pattern.fullmatch(line.rstrip())) and match["file"] == file:
                found.add(match["value"])
    if not found:
        raise ImageError(
            f"the file with checksums has no SHA-512 of {file}; give the one of the same release and architecture"
        )
    if len(found) > 1:
        raise ImageError(f"the file with checksums has {len(found)} different SHA-512 of {file}; do not use it")
    return found.pop()


def verified(content: bytes, signature: bytes | None, key: bytes, fingerprint: str = "") -> tuple[str, str]:
    """Return the text that was signed, and the fingerprint of the key that signed it.

    ``content`` holds its signature in itself, unless ``signature`` is given. ``key`` holds public keys. If it holds
    several, ``fingerprint`` has to say which of them may sign. SignatureError if anything else than that is found.
    """
    with tempfile.TemporaryDirectory(prefix="shai-images-") as home:
        directory = Path(home)
        directory.chmod(0o700)
        expected = _import(directory, key, fingerprint)
        (directory / "content").write_bytes(content)
        if signature is None:
            wanted = ["--output", str(directory / "text"), "--decrypt", str(directory / "content")]
        else:
            (directory / "signature").write_bytes(signature)
            wanted = ["--verify", str(directory / "signature"), str(directory / "content")]
        done = _gpg(directory, ["--status-fd", "1", *wanted])
        _accept(done, expected)
        text = directory / ("text" if signature is None else "content")
        try:
            return text.read_text(encoding="utf-8"), expected
        except (OSError, UnicodeDecodeError) as error:
            raise SignatureError(f"the signed file cannot be read: {error}; fetch it again") from error


def _import(directory: Path, key: bytes, fingerprint: str) -> str:
    """Give GnuPG the public keys; return the fingerprint of the one that may sign."""
    (directory / "key").write_bytes(key)
    done = _gpg(directory, ["--import", str(directory / "key")])
    listed = _gpg(directory, ["--with-colons", "--list-keys"]).stdout
    known = _primaries(listed)
    if done.returncode != 0 or not known:
        raise SignatureError(
            f"the file with the key has no public key that GnuPG can read: {_said(done)}; export it again"
        )
    wanted = fingerprint.replace(" ", "").upper()
    if not wanted and len(known) > 1:
        raise SignatureError(
            f"the file with the key has {len(known)} keys, and any of them could sign: say which one with --fingerprint"
        )
    if wanted and not _FINGERPRINT.fullmatch(wanted):
        raise SignatureError(f"{fingerprint!r} is no fingerprint; expected 40 hexadecimal digits")
    if wanted and wanted not in known:
        raise SignatureError(f"the file with the key does not have {wanted}; give the file that has it")
    return wanted or known[0]


def _primaries(listed: str) -> list[str]:
    """Return the fingerprints of all primary keys of GnuPG's list."""
    found = []
    after_primary = False
    for line in listed.splitlines():
        fields = line.split(":")
        if fields[0] == "fpr" and after_primary:
            found.append(fields[9])
        after_primary = fields[0] == "pub"
    return found


def _accept(done: subprocess.CompletedProcess[str], expected: str) -> None:
    """Return if there is one good signature, by the expected key; SignatureError otherwise."""
    status = [line.split(" ")[1:] for line in done.stdout.splitlines() if line.startswith("[GNUPG:] ")]
    for entry in status:
        if entry[0] in _REFUSED:
            raise SignatureError(
                f"the signature is not good ({' '.join(entry[:2])}): {_said(done)}; fetch the file and the key again, "
                "and do not use the checksum"
            )
    valid = [entry for entry in status if entry[0] == "VALIDSIG"]
    if done.returncode != 0 or len(valid) != 1:
        raise SignatureError(
            f"the file with checksums has {len(valid)} signatures by the given key, expected one: {_said(done)}; "
            "give a signed file, or its signature (--signature)"
        )
    digest, primary = valid[0][8], valid[0][10]
    if digest not in _STRONG:
        raise SignatureError(
            f"the signature is over a weak digest (OpenPGP's number {digest}); do not use the checksum"
        )
    if primary != expected:
        raise SignatureError(f"the signature is by {primary}, and not by {expected}; do not use the checksum")


def _gpg(directory: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [
                "gpg",
                "--homedir",
                directory,
                "--batch",
                "--no-tty",
                "--no-autostart",
                "--no-auto-key-retrieve",
                *arguments,
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise ImageError("gpg is missing, so no signature can be verified: install the package gpg") from error


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.startswith("gpg: ")]
    return " ".join(line.removeprefix("gpg: ") for line in lines[-3:]) or "GnuPG said nothing"
