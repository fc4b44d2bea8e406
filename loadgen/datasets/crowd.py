# SPDX-License-Identifier: BSD-2-Clause
"""Makes the small data directory with which sessions are measured.

Each user may read the documents of as many classes as a user of size quick: the user's own, and those of 100 friends.
Beside the users there are people who are everybody's friends, and so may read more classes than a session gets
directories for. The ones called near search for documents of the first classes, which their sessions open natively; the
ones called far for those of the last classes, which their sessions have to ask for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from loadgen.datasets.commands import write_seed_commands
from loadgen.datasets.population import STAFF

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

USERS, NEAR, FAR = "user", "near", "far"
"""The first letters of the names of users, and of those who are everybody's friends."""

REGIONS = ("us", "de", "fr")
QUERY = "moon"
EMPLOYEES = ("erin", "frank")
"""Of the support, as the example's facts have them."""

_FRIENDS = 100


@dataclass(frozen=True)
class Crowd:
    """How many people there are. ``users`` has to be well above the directories that a session gets (240)."""

    users: int = 400
    hubs: int = 24
    """How many of the near, and how many of the far."""


@dataclass(frozen=True)
class _Member:
    name: str
    region: str
    friends: Sequence[str]
    """In the profile, with which the search engine is asked."""


def seed(name: str) -> bytes:
    """Return the seed of a person's demo key."""
    return hashlib.sha256(f"shai-demo-key\nsessions\n{name}".encode()).digest()


def public_key(name: str) -> str:
    """Return the public part of a person's demo key, in hexadecimal."""
    return Ed25519PrivateKey.from_private_bytes(seed(name)).public_key().public_bytes_raw().hex()


def make(directory: Path, crowd: Crowd) -> None:
    """Fill a directory; what is in it is replaced."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "facts").mkdir(parents=True)
    users = [f"{USERS}{number:05}" for number in range(crowd.users)]
    half = min(_FRIENDS, crowd.users - 1) // 2
    around = {
        name: [users[(at + step) % crowd.users] for step in range(-half, half + 1) if step != 0]
        for at, name in enumerate(users)
    }
    members = [_Member(name, _home(at), around[name]) for at, name in enumerate(users)]
    for kind, friends in ((NEAR, users[:_FRIENDS]), (FAR, users[-_FRIENDS:])):
        members += [_Member(f"{kind}{number:05}", _home(number), friends) for number in range(crowd.hubs)]
    hubs = [member.name for member in members[crowd.users :]]
    for name in users:
        _document(directory, f"private/{name}/1.txt", name, "private")
        _document(directory, f"friends/{name}/1.txt", name, "friends")
    _facts(directory, members, {name: [*friends, *hubs] for name, friends in around.items()})
    _people(directory, members)
    (directory / "queries.txt").write_text(f"{QUERY}\n")
    write_seed_commands(directory)


def _home(number: int) -> str:
    return REGIONS[number % len(REGIONS)]


def _document(directory: Path, name: str, owner: str, visibility: str) -> None:
    path = directory / "corpus" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = " ".join([f"The {QUERY} rises over the sea, and the night is bright."] * 20)
    path.write_text(f"title: {name}\nowner: {owner}\nvisibility: {visibility}\n\n{text}\n")


def _facts(directory: Path, members: Iterable[_Member], friends: dict[str, list[str]]) -> None:
    keys = [[name, public_key(name)] for name in (*(member.name for member in members), *EMPLOYEES)]
    homes = [[member.name, member.region] for member in members]
    population = [
        {"conduit": "population", "says": "key", "tuples": keys},
        {"conduit": "population", "says": "home", "tuples": homes},
        *(
            {"conduit": f"friends/{name}", "says": "friend", "tuples": [[friend] for friend in own]}
            for name, own in friends.items()
        ),
    ]
    # Nothing is blocked: the search engine does not know regions, and the monitor would have to refuse its results.
    blocked = [{"conduit": f"blacklist/{region}", "says": "blocked", "tuples": []} for region in REGIONS]
    _lines(directory / "facts" / "population.jsonl", population)
    _lines(directory / "facts" / "blacklists.jsonl", blocked)


def _people(directory: Path, members: Iterable[_Member]) -> None:
    for name, owners in (("keys.jsonl", [member.name for member in members]), (STAFF, EMPLOYEES)):
        (directory / name).touch(mode=0o600)
        _lines(directory / name, [{"user": owner, "seed": seed(owner).hex()} for owner in owners])
    _lines(
        directory / "profiles.jsonl",
        [{"user": member.name, "friends": member.friends, "interests": [QUERY]} for member in members],
    )


def _lines(path: Path, records: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
