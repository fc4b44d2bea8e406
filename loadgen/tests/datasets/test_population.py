# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from loadgen.datasets import population
from loadgen.driving import addresses
from loadgen.tests.data import write_data

if TYPE_CHECKING:
    from pathlib import Path


def test_reads_people_with_their_keys_and_regions(people: population.Population) -> None:
    assert people["alice"].region == "us"
    assert people["bob"].region == "de"
    assert len(people["alice"].seed) == 32
    assert people.regions == ["de", "fr", "us"]


def test_popular_queries_come_first(people: population.Population) -> None:
    source = random.Random(7)
    counts = Counter(people.pick_query(source) for _ in range(20_000))
    first, tenth = counts[people.queries[0]], counts[people.queries[9]]
    assert 7 < first / tenth < 14  # Zipf with exponent 1: 10


def test_other_region_is_never_home(people: population.Population) -> None:
    source = random.Random(7)
    assert {people.other_region("de", source) for _ in range(50)} == {"us", "fr"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("keys.jsonl", '{"user":"alice"}', "keys.jsonl:1: not a demo key"),
        ("keys.jsonl", '{"user":"nobody","seed":"00"}', "keys.jsonl:1: not a demo key"),
        ("keys.jsonl", "{", "keys.jsonl:1: not JSON"),
        ("keys.jsonl", "[" * 200_000, "keys.jsonl:1: not JSON"),
        ("keys.jsonl", "[]", "keys.jsonl:1: expected a JSON object"),
        ("keys.jsonl", "", "at least one person"),
        ("facts/population.jsonl", '{"says":"home","tuples":[["alice"]]}', "population.jsonl:1: expected home"),
        ("queries.txt", "", "at least one person and one query"),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    write_data(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(population.PopulationError, match=message):
        population.load(tmp_path)


def test_source_addresses_lie_in_their_regions_networks() -> None:
    for number in (0, 199, 200, 65535):
        assert addresses.source_address("de", number).startswith("127.0.1.")
        assert addresses.source_address("us", number) != "127.0.0.1"
    assert len({addresses.source_address("fr", number) for number in range(1000)}) == 200


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("192.0.2.1", False), ("sys-e.example", False)],
)
def test_only_loopback_servers_get_region_addresses(host: str, loopback: bool) -> None:  # noqa: FBT001
    assert addresses.is_loopback(host) is loopback
