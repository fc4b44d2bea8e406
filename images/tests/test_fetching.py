# SPDX-License-Identifier: BSD-2-Clause
"""Downloads: cut, changed and refused ones leave nothing, and what arrives whole is in the cache by its content."""

from __future__ import annotations

import socket
from random import Random
from typing import TYPE_CHECKING

import pytest

from images import fetching
from images.errors import ChecksumMismatchError, ImageError
from images.fetching import Patience
from images.tests.mirror import Mirror, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEBIBYTE = 1 << 20
CONTENT = Random(1).randbytes(3 * MEBIBYTE)
SOON = Patience(attempts=3, pause_seconds=0)
NAME = "disk.raw.xz"


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving(Mirror(CONTENT)) as running:
        yield running


def fetch(mirror: Mirror, cache: Path, sha512: str = "") -> Path:
    return fetching.fetch(f"{mirror.url}/pub/{NAME}", sha512 or mirror.sha512, cache, patience=SOON)


def test_an_image_is_stored_by_its_content(mirror: Mirror, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    place = fetch(mirror, cache)
    assert place == cache / mirror.sha512 / NAME
    assert place.read_bytes() == CONTENT
    assert [path.name for path in cache.iterdir()] == [mirror.sha512]


def test_an_image_that_is_there_is_not_fetched_again(mirror: Mirror, tmp_path: Path) -> None:
    fetch(mirror, tmp_path)
    mirror.status = 404
    assert fetch(mirror, tmp_path).read_bytes() == CONTENT
    assert len(mirror.asked) == 1


def test_an_image_that_has_changed_in_the_cache_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    place = fetch(mirror, tmp_path)
    place.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(ChecksumMismatchError, match="delete it, and fetch it again"):
        fetch(mirror, tmp_path)


def test_a_cut_download_goes_on_where_it_was(mirror: Mirror, tmp_path: Path) -> None:
    mirror.cut_after = [2 * MEBIBYTE, 100]
    assert fetch(mirror, tmp_path).read_bytes() == CONTENT
    assert mirror.asked == ["", f"bytes={2 * MEBIBYTE}-", f"bytes={2 * MEBIBYTE + 100}-"]


def test_a_cut_download_begins_again_where_parts_cannot_be_had(mirror: Mirror, tmp_path: Path) -> None:
    mirror.cut_after, mirror.ranges = [2 * MEBIBYTE], False
    assert fetch(mirror, tmp_path).read_bytes() == CONTENT


def test_a_cut_download_begins_again_when_the_file_has_changed(mirror: Mirror, tmp_path: Path) -> None:
    """The parts of two versions are not put together."""
    new = CONTENT[::-1]
    mirror.cut_after = [2 * MEBIBYTE]
    old_etag = mirror.etag = '"old"'

    def changed(done: int, total: int) -> None:
        del done, total
        mirror.content, mirror.etag = new, '"new"'

    wanted = Mirror(new).sha512
    place = fetching.fetch(f"{mirror.url}/{NAME}", wanted, tmp_path, changed, SOON)
    assert place.read_bytes() == new
    assert mirror.asked == ["", f"bytes={2 * MEBIBYTE}-"], f"the second request asked for the part of {old_etag}"


@pytest.mark.parametrize("etag", ['W/"weak"', '"\xff"', ""])
def test_a_weak_version_does_not_join_parts(mirror: Mirror, tmp_path: Path, etag: str) -> None:
    mirror.cut_after, mirror.etag = [2 * MEBIBYTE], etag
    assert fetch(mirror, tmp_path).read_bytes() == CONTENT
    assert mirror.asked[1] == ("" if etag else f"bytes={2 * MEBIBYTE}-")


def nothing_stays(cache: Path) -> bool:
    return not cache.exists() or list(cache.iterdir()) == []


def test_a_download_that_is_cut_again_and_again_leaves_nothing(mirror: Mirror, tmp_path: Path) -> None:
    mirror.cut_after = [10] * 100
    with pytest.raises(ImageError, match=r"was cut after 30 bytes, 3 times in a row"):
        fetch(mirror, tmp_path)
    assert nothing_stays(tmp_path)
    assert len(mirror.asked) == 3


def test_a_wrong_checksum_leaves_nothing(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(ChecksumMismatchError, match="abababababababab… is pinned; use another mirror"):
        fetch(mirror, tmp_path, "ab" * 64)
    assert nothing_stays(tmp_path)


def test_another_part_than_was_asked_for_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    mirror.cut_after, mirror.shift = [2 * MEBIBYTE], 1
    with pytest.raises(ImageError, match="another part than was asked for"):
        fetch(mirror, tmp_path)
    assert nothing_stays(tmp_path)


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_a_refusal_is_final(mirror: Mirror, tmp_path: Path, status: int) -> None:
    mirror.status = status
    with pytest.raises(ImageError, match=f"the server answered {status}"):
        fetch(mirror, tmp_path)
    assert nothing_stays(tmp_path)
    assert len(mirror.asked) == 1


def test_a_redirection_to_what_is_no_name_of_a_host_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    mirror.location = f"http://{'a' * 64}.example/"
    with pytest.raises(ImageError, match="is no URL"):
        fetch(mirror, tmp_path)
    assert nothing_stays(tmp_path)
    with pytest.raises(ImageError, match="cannot be fetched"):
        fetching.small(mirror.url)


def test_a_refusal_writes_nothing_to_the_terminal_but_its_number(mirror: Mirror, tmp_path: Path) -> None:
    mirror.status, mirror.phrase = 500, "\x1b[2JDone"
    with pytest.raises(ImageError, match="the server answered 500; check the mirror"):
        fetch(mirror, tmp_path)


def test_a_mirror_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/{NAME}"
        with pytest.raises(ImageError, match="after 0 bytes, 3 times in a row"):
            fetching.fetch(url, "ab" * 64, tmp_path, patience=SOON)
    assert nothing_stays(tmp_path)


def test_more_than_an_image_can_have_is_refused(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_MOST_COMPRESSED", len(CONTENT) - 1)
    seen: list[int] = []
    with pytest.raises(ImageError, match="which is no image"):
        fetching.fetch(f"{mirror.url}/{NAME}", mirror.sha512, tmp_path, lambda done, _: seen.append(done), SOON)
    assert seen == []
    assert nothing_stays(tmp_path)
    monkeypatch.setattr(fetching, "_MOST_COMPRESSED", len(CONTENT))
    fetch(mirror, tmp_path)


@pytest.mark.parametrize(("name", "most"), [("disk.raw.xz", 2), ("disk.raw", 4)])
def test_a_file_that_never_ends_is_refused(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    """Without a length that says so at once."""
    monkeypatch.setattr(fetching, "_MOST_COMPRESSED", 2 * MEBIBYTE)
    monkeypatch.setattr(fetching, "_MOST", 4 * MEBIBYTE)
    mirror.endless = bytes(1000)
    seen: list[int] = []
    with pytest.raises(ImageError, match="which is no image"):
        fetching.fetch(f"{mirror.url}/{name}", "ab" * 64, tmp_path, lambda done, _: seen.append(done), SOON)
    assert seen[-1] <= most * MEBIBYTE
    assert seen[-1] > (most - 1) * MEBIBYTE
    assert nothing_stays(tmp_path)


def test_a_connection_that_drips_counts_as_cut(mirror: Mirror, tmp_path: Path) -> None:
    mirror.endless, mirror.pause_seconds = b"ab", 0.01
    impatient = Patience(attempts=3, pause_seconds=0, slow_seconds=0.05)
    with pytest.raises(ImageError, match=r"3 times in a row .*: less than a mebibyte came in 0.05 s; check the"):
        fetching.fetch(f"{mirror.url}/{NAME}", "ab" * 64, tmp_path, patience=impatient)
    assert nothing_stays(tmp_path)
    assert len(mirror.asked) == 3


def test_a_small_file_that_drips_is_refused(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_SMALL_SECONDS", 0.05)
    mirror.endless, mirror.pause_seconds = b"ab", 0.01
    with pytest.raises(ImageError, match=r"took longer than 0.05 s; check the network"):
        fetching.small(mirror.url)


def test_an_interrupt_leaves_nothing(mirror: Mirror, tmp_path: Path) -> None:
    def interrupted(done: int, total: int) -> None:
        del done, total
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetching.fetch(f"{mirror.url}/{NAME}", mirror.sha512, tmp_path, interrupted, SOON)
    assert nothing_stays(tmp_path)


def test_progress_says_how_much_there_is(mirror: Mirror, tmp_path: Path) -> None:
    mirror.cut_after = [2 * MEBIBYTE]
    seen: list[tuple[int, int]] = []
    fetching.fetch(
        f"{mirror.url}/{NAME}", mirror.sha512, tmp_path, lambda done, total: seen.append((done, total)), SOON
    )
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert {total for _, total in seen} == {len(CONTENT)}
    assert sorted(seen) == seen


def test_a_cache_that_cannot_be_made(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageError, match="cannot hold images"):
        fetch(mirror, tmp_path / "file")


def test_a_small_file_is_read_whole(mirror: Mirror) -> None:
    mirror.content = b"SHA512"
    assert fetching.small(mirror.url) == b"SHA512"
    mirror.content = CONTENT
    with pytest.raises(ImageError, match="no file with checksums"):
        fetching.small(mirror.url)
    mirror.status = 404
    with pytest.raises(ImageError, match="the server answered 404"):
        fetching.small(mirror.url)
