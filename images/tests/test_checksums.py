# SPDX-License-Identifier: BSD-2-Clause
"""Only what the given key has signed is believed."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from images import checksums
from images.errors import ImageError, SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "FreeBSD-14.5-RELEASE-amd64-BASIC-CLOUDINIT-ufs.raw.xz"
SUM, OTHER = "ab" * 64, "cd" * 64
TEXT = f"SHA512 ({FILE}) = {SUM}\nSHA512 (another.raw.xz) = {OTHER}\n"


@dataclass(frozen=True)
class Signer:
    """A key of its own, in a directory of its own."""

    home: Path

    def gpg(self, *arguments: str, text: bytes = b"") -> bytes:
        return subprocess.run(
            ["gpg", "--homedir", self.home, "--batch", "--pinentry-mode", "loopback", "--passphrase", "", *arguments],
            input=text,
            capture_output=True,
            check=True,
        ).stdout

    def make(self, name: str, expires: str = "never") -> None:
        self.gpg("--quick-generate-key", name, "ed25519", "sign", expires)

    def public(self) -> bytes:
        return self.gpg("--armor", "--export")

    def fingerprint(self) -> str:
        listed = self.gpg("--with-colons", "--list-keys").decode()
        return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))

    def clear(self, text: str, *options: str) -> bytes:
        return self.gpg(*options, "--clearsign", text=text.encode())

    def stop(self) -> None:
        subprocess.run(["gpgconf", "--homedir", self.home, "--kill", "all"], check=True)


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    with made(tmp_path_factory, "signer") as signer:
        yield signer


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    with made(tmp_path_factory, "stranger") as stranger:
        yield stranger


@contextmanager
def made(factory: pytest.TempPathFactory, name: str) -> Iterator[Signer]:
    """Make a key, and stop GnuPG's agent at the end."""
    home = factory.mktemp(name)
    home.chmod(0o700)
    signer = Signer(home)
    signer.make(name)
    try:
        yield signer
    finally:
        signer.stop()


def test_a_signed_text_is_read(signer: Signer) -> None:
    text, by = checksums.verified(signer.clear(TEXT), None, signer.public())
    assert checksums.value_of(text, FILE) == SUM
    assert by == signer.fingerprint()


def test_a_signature_beside_the_file_is_read(signer: Signer) -> None:
    signature = signer.gpg("--armor", "--detach-sign", text=TEXT.encode())
    assert checksums.verified(TEXT.encode(), signature, signer.public()) == (TEXT, signer.fingerprint())
    with pytest.raises(SignatureError, match="BADSIG"):
        checksums.verified(TEXT.replace(SUM, OTHER).encode(), signature, signer.public())


def test_a_changed_text_is_refused(signer: Signer) -> None:
    with pytest.raises(SignatureError, match="BADSIG"):
        checksums.verified(signer.clear(TEXT).replace(SUM.encode(), OTHER.encode()), None, signer.public())


def test_another_persons_signature_is_refused(signer: Signer, stranger: Signer) -> None:
    with pytest.raises(SignatureError, match="ERRSIG"):
        checksums.verified(stranger.clear(TEXT), None, signer.public())


def test_text_without_a_signature_is_refused(signer: Signer) -> None:
    for content in (TEXT.encode(), b"", b"-----BEGIN PGP SIGNED MESSAGE-----\n\nx\n", signer.gpg("--store", text=b"a")):
        with pytest.raises(SignatureError):
            checksums.verified(content, None, signer.public())


def test_what_stands_around_the_signed_text_is_not_read(signer: Signer) -> None:
    """A line before or after what is signed is not part of the signed text, though it is in the file."""
    forged = f"SHA512 ({FILE}) = {OTHER}\n".encode()
    signed = signer.clear(f"SHA512 (another.raw.xz) = {OTHER}\n")
    for content in (forged + signed, signed + forged):
        try:
            text, _ = checksums.verified(content, None, signer.public())
        except SignatureError:
            continue
        with pytest.raises(ImageError, match="has no SHA-512"):
            checksums.value_of(text, FILE)


def test_a_signature_over_a_weak_digest_is_refused(signer: Signer) -> None:
    with pytest.raises(SignatureError, match="weak digest"):
        checksums.verified(signer.clear(TEXT, "--digest-algo", "SHA1"), None, signer.public())


def test_an_expired_key_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    signer = Signer(tmp_path)
    # The key was valid for a day, long ago.
    signer.gpg("--faked-system-time", "20200101T000000", "--quick-generate-key", "old", "ed25519", "sign", "1d")
    signed = signer.clear(TEXT, "--faked-system-time", "20200101T100000")
    with pytest.raises(SignatureError, match="EXPKEYSIG"):
        checksums.verified(signed, None, signer.public())
    signer.stop()


def test_of_several_keys_one_has_to_be_named(signer: Signer, stranger: Signer) -> None:
    both = signer.public() + stranger.public()
    with pytest.raises(
        SignatureError, match="has 2 keys, and any of them could sign: say which one with --fingerprint"
    ):
        checksums.verified(signer.clear(TEXT), None, both)
    assert checksums.verified(signer.clear(TEXT), None, both, signer.fingerprint())[1] == signer.fingerprint()
    with pytest.raises(SignatureError, match=f"the signature is by {signer.fingerprint()}, and not by"):
        checksums.verified(signer.clear(TEXT), None, both, stranger.fingerprint())


@pytest.mark.parametrize("fingerprint", ["0" * 40, "x", "--armor", "0" * 16])
def test_a_fingerprint_of_no_given_key_is_refused(signer: Signer, fingerprint: str) -> None:
    with pytest.raises(SignatureError, match=r"is no fingerprint|does not have"):
        checksums.verified(signer.clear(TEXT), None, signer.public(), fingerprint)


@pytest.mark.parametrize("key", [b"", b"no key", b"\x00" * 100])
def test_a_file_without_a_key_is_refused(signer: Signer, key: bytes) -> None:
    with pytest.raises(SignatureError, match="no public key"):
        checksums.verified(signer.clear(TEXT), None, key)


def test_without_gnupg_nothing_is_verified(signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    signed, public = signer.clear(TEXT), signer.public()

    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", missing)
    with pytest.raises(ImageError, match="install the package gpg"):
        checksums.verified(signed, None, public)


@pytest.mark.parametrize("text", [f"{SUM}  {FILE}\n", f"{SUM} *{FILE}\n", f"x\n{SUM}  {FILE}\r\n{OTHER}  a\n"])
def test_both_forms_of_lines_are_read(text: str) -> None:
    assert checksums.value_of(text, FILE) == SUM


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"SHA512 ({FILE}.asc) = {SUM}\n",
        f"SHA512 (x{FILE}) = {SUM}\n",
        f"SHA256 ({FILE}) = {SUM[:64]}\n",
        f"SHA512 ({FILE}) = {SUM[:-1]}\n",
        f"SHA512 ({FILE}) = {SUM}0\n",
        f"# SHA512 ({FILE}) = {SUM}\n",
        f"SHA512 ({FILE}) = {SUM.upper()}\n",
        f"SHA512 ({FILE.replace('.', 'x')}) = {SUM}\n",
    ],
)
def test_a_file_that_is_not_listed_has_no_checksum(text: str) -> None:
    with pytest.raises(ImageError, match=f"has no SHA-512 of {FILE}"):
        checksums.value_of(text, FILE)


def test_two_checksums_are_none() -> None:
    with pytest.raises(ImageError, match="has 2 different SHA-512"):
        checksums.value_of(f"SHA512 ({FILE}) = {SUM}\nSHA512 ({FILE}) = {OTHER}\n", FILE)
    assert checksums.value_of(f"SHA512 ({FILE}) = {SUM}\n{SUM}  {FILE}\n", FILE) == SUM
