# SPDX-License-Identifier: BSD-2-Clause
"""Images: which directories are images, and what changes their digest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from shai_operator.providers import images
from shai_operator.providers.interface import ImageMissingError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "default"
    for name in images.REQUIRED:
        (path / name).parent.mkdir(parents=True)
        (path / name).write_text(name)
    return path


def change_content(image: Path) -> None:
    (image / "bin/shai").write_text("another program, as long")


def change_content_of_the_same_size(image: Path) -> None:
    (image / "bin/shai").write_text("IAHS/nib")


def change_mode(image: Path) -> None:
    (image / "bin/shai").chmod(0o755)


def add_file(image: Path) -> None:
    (image / "task.py").touch()


def rename(image: Path) -> None:
    (image / "runtime/other.so").write_text("x")
    (image / "runtime/other.so").rename(image / "runtime/renamed.so")


def add_link(image: Path) -> None:
    (image / "lib").symlink_to("runtime")


@pytest.mark.parametrize(
    "change", [change_content, change_content_of_the_same_size, change_mode, add_file, rename, add_link]
)
def test_a_change_changes_the_digest(image: Path, change: object) -> None:
    before = images.read(image.parent, "default")
    assert images.read(image.parent, "default") == before
    assert callable(change)
    change(image)
    assert images.read(image.parent, "default").digest != before.digest


def test_where_an_image_lies_and_when_it_was_made_do_not_count(image: Path) -> None:
    before = images.read(image.parent, "default").digest
    for file in image.rglob("*"):
        os.utime(file, (1, 1))
    image.rename(image.parent / "moved")
    assert images.read(image.parent, "moved").digest == before


@pytest.mark.parametrize("name", ["", ".", "..", "../default", "a/b", "absent"])
def test_what_is_no_image(image: Path, name: str) -> None:
    with pytest.raises(ImageMissingError, match="image"):
        images.read(image.parent, name)


@pytest.mark.parametrize("missing", images.REQUIRED)
def test_an_image_that_lacks_something_is_none(image: Path, missing: str) -> None:
    (image / missing).unlink()
    with pytest.raises(ImageMissingError, match=f"{missing} is missing; build"):
        images.read(image.parent, "default")


def test_what_cannot_be_packed_is_refused(image: Path) -> None:
    os.mkfifo(image / "pipe")
    with pytest.raises(ImageMissingError, match="neither a file nor a directory"):
        images.read(image.parent, "default")
