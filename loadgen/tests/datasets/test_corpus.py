# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from loadgen.datasets import corpus
from loadgen.datasets.sizes import DATASETS


@pytest.fixture
def generator(tmp_path: Path) -> corpus.Generator:
    (tmp_path / "syse.jar").write_text("one")
    return corpus.Generator(tmp_path / "syse.jar", Path("java"))


def test_a_dataset_is_made_once_per_order(tmp_path: Path, generator: corpus.Generator) -> None:
    place, runs = tmp_path / "data", list[Sequence[str]]()

    def run(words: Sequence[str]) -> None:
        runs.append(words)
        (place / "profiles.jsonl").write_text('{"user": "bob"}\n')

    smoke = DATASETS["smoke"]
    assert corpus.make(place, smoke, 1, generator, run)
    assert (place / "profiles.resp").read_bytes().startswith(b"*3\r\n$3\r\nSET\r\n$11\r\nprofile:bob\r\n")
    assert corpus.describe(place)["documents"] == 2000
    assert not corpus.make(place, smoke, 1, generator, run)
    assert corpus.make(place, smoke, 2, generator, run)
    generator.jar.write_text("two")
    assert corpus.make(place, smoke, 2, generator, run)
    assert runs[0] != runs[1] == runs[2]


def test_an_interrupted_dataset_is_made_anew(tmp_path: Path, generator: corpus.Generator) -> None:
    place = tmp_path / "data"

    def fail(_: Sequence[str]) -> None:
        (place / "profiles.jsonl").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus.make(place, DATASETS["smoke"], 1, generator, fail)
    assert corpus.describe(place) == {}
    assert corpus.make(place, DATASETS["smoke"], 1, generator, lambda _: (place / "profiles.jsonl").touch())
