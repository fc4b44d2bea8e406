# SPDX-License-Identifier: BSD-2-Clause
"""Downloads images into a cache whose folders are named by content, and small files with checksums."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import httpx2

from images.errors import ChecksumMismatchError, ImageError

_LITTLE = 1 << 20
_SMALL = 1 << 20
_MOST = 64 << 30
_MOST_COMPRESSED = 8 << 30
"""More than any image; a server must not fill the disk."""
_SMALL_SECONDS = 120.0
_PARTIAL = 206
_TIMEOUT = httpx2.Timeout(30.0)
_NO_URL = (httpx2.InvalidURL, UnicodeError)
"""What a URL raises that is none, or that a server redirects to; the latter for names that no host can have."""


class Progress(Protocol):
    """Shows how far a download is: bytes that are there, and all of them (0 while unknown)."""

    def __call__(self, done: int, total: int) -> None:
        """Show it."""


@dataclass(frozen=True)
class Patience:
    """How long a download goes on when the connection is cut."""

    attempts: int = 5
    """Connections in a row that bring less than a mebibyte."""
    pause_seconds: float = 2.0
    """Time before the next connection; it doubles while too little comes."""
    slow_seconds: float = 120.0
    """How long a mebibyte may take before the connection is cut: one that drips would else never end."""


def fetch(
    url: str,
    sha512: str,
    cache: Path,
    progress: Progress = lambda done, total: None,  # noqa: ARG005
    patience: Patience = Patience(),
) -> Path:
    """Return the file with a checksum, from the cache or from the URL; ImageError if it cannot be had.

    A file gets its name in the cache only when its checksum is right. Nothing of a download that fails stays.
    """
    place = cache / sha512 / url.rsplit("/", 1)[1]
    if place.is_file():
        _expect(place, _digest_of(place), sha512, "delete it, and fetch it again")
        return place
    try:
        cache.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".fetching-", dir=cache)
    except OSError as error:
        raise ImageError(f"{cache} cannot hold images: {error}; choose another directory") from error
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            digest = _download(url, file, progress, patience)
            _expect(url, digest, sha512, "use another mirror; if all bring this file, the recorded checksum is wrong")
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o644)
        place.parent.mkdir(exist_ok=True)
        part.replace(place)
    except OSError as error:
        raise ImageError(
            f"{url} cannot be stored in {cache}: {error}; make room, or choose another directory"
        ) from error
    finally:
        part.unlink(missing_ok=True)
        with suppress(OSError):  # it has an image
            place.parent.rmdir()
    return place


def small(url: str) -> bytes:
    """Return the content of a small file; ImageError if it cannot be had, or has more than a mebibyte."""
    content = bytearray()
    end = time.monotonic() + _SMALL_SECONDS
    try:
        with httpx2.stream("GET", url, timeout=_TIMEOUT, follow_redirects=True) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > _SMALL:
                    raise ImageError(
                        f"{url} has more than {_SMALL} bytes, which is no file with checksums; check the URL"
                    )
                if time.monotonic() > end:
                    raise ImageError(
                        f"{url} took longer than {_SMALL_SECONDS:g} s; check the network, or give the file itself"
                    )
    except (httpx2.HTTPError, *_NO_URL) as error:
        raise ImageError(
            f"{url} cannot be fetched: {_why(error)}; check the network, or give the file itself"
        ) from error
    return bytes(content)


def _download(url: str, file: BinaryIO, progress: Progress, patience: Patience) -> str:
    """Write a URL's content into a file, with a new connection where the last one was cut; return its SHA-512."""
    transfer = _Transfer(url, file, progress, patience.slow_seconds)
    idle, pause = 0, patience.pause_seconds
    while True:
        before = transfer.done
        try:
            transfer.go_on()
        except _NO_URL as error:
            raise ImageError(f"{url} is no URL, or leads to what is none: {error}; check the mirror") from error
        except httpx2.HTTPStatusError as error:
            raise ImageError(f"{url} cannot be fetched: {_why(error)}; check the mirror") from error
        except httpx2.HTTPError as error:
            brought = transfer.done - before >= _LITTLE
            idle = 0 if brought else idle + 1
            if idle >= patience.attempts:
                raise ImageError(
                    f"{url} was cut after {transfer.done} bytes, {idle} times in a row with little in between: "
                    f"{_why(error)}; check the network, or use another mirror"
                ) from error
            time.sleep(pause)
            pause = patience.pause_seconds if brought else pause * 2
        else:
            return transfer.digest.hexdigest()


class _Transfer:
    """One file on its way, over as many connections as it takes."""

    def __init__(self, url: str, file: BinaryIO, progress: Progress, slow_seconds: float) -> None:
        self._url, self._file, self._progress, self._slow_seconds = url, file, progress, slow_seconds
        self._most = _MOST_COMPRESSED if url.endswith(".xz") else _MOST
        self._version = ""
        self.done = 0
        self.digest = hashlib.sha512()

    def go_on(self) -> None:
        """Fetch what is missing; HTTPError when the connection is cut, or the server refuses."""
        # Compressed transfer would make positions meaningless.
        headers = {"Accept-Encoding": "identity"}
        if self.done and self._version:
            headers |= {"Range": f"bytes={self.done}-", "If-Range": self._version}
        with httpx2.stream("GET", self._url, headers=headers, timeout=_TIMEOUT, follow_redirects=True) as response:
            response.raise_for_status()
            if not self._continues(response):
                self._restart()
            self._version = _strong_version(response)
            total = self.done + int(response.headers.get("Content-Length", 0))
            self._bound(total)
            since, before = time.monotonic(), self.done
            for chunk in response.iter_raw():
                self._file.write(chunk)
                self.digest.update(chunk)
                self.done += len(chunk)
                self._bound(self.done)
                self._progress(self.done, total)
                if self.done - before >= _LITTLE:
                    since, before = time.monotonic(), self.done
                elif time.monotonic() - since > self._slow_seconds:
                    raise httpx2.ReadTimeout(f"less than a mebibyte came in {self._slow_seconds:g} s")

    def _bound(self, size: int) -> None:
        if size > self._most:
            raise ImageError(f"{self._url} has more than {self._most >> 30} GiB, which is no image; check the mirror")

    def _continues(self, response: httpx2.Response) -> bool:
        """Whether a response begins where the last one ended; one with all of the file does not."""
        if response.status_code != _PARTIAL:
            return False
        if response.headers.get("Content-Range", "").startswith(f"bytes {self.done}-"):
            return True
        raise ImageError(f"{self._url}: the server sent another part than was asked for; use another mirror")

    def _restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.done = 0
        self.digest = hashlib.sha512()


def _strong_version(response: httpx2.Response) -> str:
    """Return what tells this version of a file from others, for If-Range, which takes no weak ETag."""
    etag: str = response.headers.get("ETag", "")
    modified: str = response.headers.get("Last-Modified", "")
    version = etag if etag and not etag.startswith("W/") else modified
    return version if version.isascii() else ""  # others cannot be sent back


def _digest_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha512").hexdigest()
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error}; delete it, and fetch it again") from error


def _expect(what: object, found: str, wanted: str, remedy: str) -> None:
    if found != wanted:
        raise ChecksumMismatchError(f"{what} has SHA-512 {found[:16]}…, and {wanted[:16]}… is pinned; {remedy}")


def _why(error: Exception) -> str:
    if isinstance(error, httpx2.HTTPStatusError):
        return f"the server answered {error.response.status_code}"
    return str(error) or type(error).__name__
