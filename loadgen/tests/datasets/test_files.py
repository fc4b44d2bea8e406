# SPDX-License-Identifier: BSD-2-Clause
"""A member's data may be written by the tasks of its pipeline: no reader follows links, waits, or fills memory.

Each of what a task can put into the place of a file is tried with each reader, beside the file itself.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.datasets import corpus, documents, files, population
from loadgen.tests.data import write_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DIARY = "corpus/private/bob/7.txt"


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def listening(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def linked_folder(path: Path) -> None:
    folder = path.parent
    folder.rename(folder.with_name("others"))
    folder.symlink_to("others")


def endless(path: Path) -> None:
    os.truncate(path, files.LONGEST_BYTES + 1)


def missing(path: Path) -> None:
    path.unlink()


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


READERS: dict[str, Callable[[Path], Any]] = {
    **dict.fromkeys(population.FILES, population.load),
    corpus.ABOUT: lambda data: files.read(data, corpus.ABOUT),
    DIARY: lambda data: list(documents.titled(data, "corpus/private/bob")),
}
REPLACEMENTS: dict[Callable[[Path], None], str] = {
    fifo: "it is not a regular file",
    listening: "No such device or address",
    link: "symbolic link",
    linked_folder: "symbolic link",
    endless: "it has more than 256 MiB",
    missing: "No such file or directory",
    directory: "it is not a regular file",
}


@pytest.fixture(autouse=True)
def hanging() -> Iterator[None]:
    """Let a reader that waits for ever fail its test."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("a reader waits"))
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    data = write_data(tmp_path / "data")
    (data / corpus.ABOUT).write_text('{"documents": 1}\n')
    return data


def tried() -> list[Any]:
    found = []
    for name in READERS:
        for replace in REPLACEMENTS:
            top = "/" not in name and replace is linked_folder  # the directory itself is the operator's
            absent = name == DIARY and replace in (missing, endless)  # not found; read up to its title
            if not top and not absent:
                found.append(pytest.param(name, replace, id=f"{name}-{replace.__name__}"))
    return found


@pytest.mark.parametrize(("name", "replace"), tried())
def test_only_regular_files_of_bounded_length_are_read(data: Path, name: str, replace: Callable[[Path], None]) -> None:
    assert READERS[name](data)
    replace(data / name)
    with pytest.raises(files.DataFileError) as raised:
        READERS[name](data)
    assert str(raised.value).startswith(f"cannot read {data}/{name}")
    assert REPLACEMENTS[replace] in str(raised.value)
    assert str(raised.value).endswith("; make the corpus again (make demo does)")
    # An author of pipelines may know which file it is, and not where it is, or whose document.
    assert str(data) not in raised.value.public
    assert raised.value.public.startswith(f"cannot read {name} of the member's data: ") is (name != DIARY)


def test_a_file_of_the_greatest_length_is_read(data: Path) -> None:
    os.truncate(data / "queries.txt", files.LONGEST_BYTES)
    assert len(files.read(data, "queries.txt")) > len("tïtle")


@pytest.mark.parametrize("replace", [fifo, link, endless, missing])
def test_the_size_of_data_is_left_out_where_it_cannot_be_read(data: Path, replace: Callable[[Path], None]) -> None:
    assert corpus.describe(data) == {"documents": 1}
    replace(data / corpus.ABOUT)
    assert corpus.describe(data) == {}


@pytest.mark.parametrize("text", ["[1]", "{", "[" * 200_000, "\x00"])
def test_no_size_is_made_of_something_else(data: Path, text: str) -> None:
    (data / corpus.ABOUT).write_text(text)
    assert corpus.describe(data) == {}


def test_a_name_leads_to_no_directory_above(data: Path) -> None:
    (data.parent / "secret.txt").write_text("title: of somebody else\n")
    with pytest.raises(files.DataFileError, match="symbolic link"):
        list(documents.titled(data, "corpus/../.."))


def test_a_document_with_an_endless_line_is_not_read_to_its_end(data: Path) -> None:
    (data / DIARY).write_text("title: long\n")
    os.truncate(data / DIARY, 1 << 40)
    assert [title for _, title in documents.titled(data, "corpus")] == ["long"]
    (data / DIARY).write_text("owner: bob")
    os.truncate(data / DIARY, 1 << 40)
    assert list(documents.titled(data, "corpus")) == []


def test_data_may_lie_behind_a_link_that_names_the_directory(data: Path) -> None:
    (data.parent / "link").symlink_to(data)
    assert population.load(data.parent / "link")["alice"].region == "us"
    shutil.rmtree(data)
    with pytest.raises(files.DataFileError, match="No such file or directory"):
        population.load(data.parent / "link")
