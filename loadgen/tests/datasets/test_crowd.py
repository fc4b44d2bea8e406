# SPDX-License-Identifier: BSD-2-Clause
"""The data with which sessions are measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loadgen.datasets import crowd, population

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORIES = 240
"""SHAI_DIRECTORIES_MAX of shai_wire.h."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("crowd") / "data"
    crowd.make(made, crowd.Crowd())
    return made


def facts(data: Path) -> dict[tuple[str, str], list[list[str]]]:
    lines = (data / "facts" / "population.jsonl").read_text().splitlines()
    return {(fact["conduit"], fact["says"]): fact["tuples"] for fact in map(json.loads, lines)}


def test_everybody_can_log_in(data: Path) -> None:
    people = population.load(data)
    keys = dict(facts(data)["population", "key"])
    for person in people.people:
        assert (
            Ed25519PrivateKey.from_private_bytes(person.seed).public_key().public_bytes_raw().hex() == keys[person.name]
        )
    for kind, number in ((crowd.USERS, 400), (crowd.NEAR, 24), (crowd.FAR, 24)):
        assert len(people.named(kind).people) == number
    with pytest.raises(population.PopulationError, match="at least one person"):
        people.named("nobody")


def test_employees_can_log_in_where_their_office_is_and_are_no_users(data: Path) -> None:
    offices = {"erin": "us", "frank": "de"}
    keys = dict(facts(data)["population", "key"])
    for person in population.staff(data, offices):
        assert crowd.public_key(person.name) == keys[person.name]
        assert (person.seed, person.region) == (crowd.seed(person.name), offices[person.name])
        assert person.name not in population.load(data)
    assert population.staff(data, {"frank": "fr"})[0].region == "fr"
    with pytest.raises(population.PopulationError, match=r"staff\.jsonl: no demo key of mallory"):
        population.staff(data, {"erin": "us", "mallory": "us"})
    assert (data / population.STAFF).stat().st_mode & 0o077 == 0


def test_friendship_is_mutual_and_only_hubs_have_more_friends_than_directories(data: Path) -> None:
    shown = {name: [name for [name] in tuples] for (name, says), tuples in facts(data).items() if says == "friend"}
    profiles = [json.loads(line) for line in (data / "profiles.jsonl").read_text().splitlines()]
    for profile in profiles:
        friend_of = [owner for owner, friends in shown.items() if profile["user"] in friends]
        assert {f"friends/{friend}" for friend in profile["friends"]} <= set(friend_of)
        assert len(profile["friends"]) == 100
        assert (len(friend_of) > DIRECTORIES) == (not profile["user"].startswith(crowd.USERS))


def test_near_and_far_search_for_the_same_number_of_other_documents(data: Path) -> None:
    profiles = {
        one["user"]: one["friends"] for one in map(json.loads, (data / "profiles.jsonl").read_text().splitlines())
    }
    near, far = set(profiles["near00000"]), set(profiles["far00000"])
    assert len(near) == len(far) == 100
    assert max(near) < min(far)


def test_making_again_replaces_everything(data: Path) -> None:
    left = data / "corpus" / "left.txt"
    left.touch()
    crowd.make(data, crowd.Crowd())
    assert not left.exists()
    assert (data / "keys.jsonl").stat().st_mode & 0o077 == 0
