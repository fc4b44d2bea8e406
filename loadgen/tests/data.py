# SPDX-License-Identifier: BSD-2-Clause
"""A small data directory in the corpus generator's format."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REGIONS = ("us", "de", "fr")


def write_data(directory: Path, people: int = 12, queries: int = 50) -> Path:
    names = ["alice", "bob", "carol", *(f"user{number:05}" for number in range(4, people + 1))]
    (directory / "facts").mkdir(parents=True, exist_ok=True)
    private = directory / "corpus" / "private" / "bob"
    private.mkdir(parents=True)
    (private / "7.txt").write_text("title: bob's diary\nowner: bob\nvisibility: private\n\nDear diary\n")
    with (directory / "profiles.jsonl").open("w") as file:
        for name in names:
            file.write(json.dumps({"user": name, "friends": [], "interests": ["ünits"]}) + "\n")
    with (directory / "keys.jsonl").open("w") as file:
        for name in names:
            seed = hashlib.sha256(f"shai-demo-key\n1\n{name}".encode()).hexdigest()
            file.write(json.dumps({"user": name, "seed": seed}) + "\n")
    homes = [[name, REGIONS[number % 3]] for number, name in enumerate(names)]
    facts = [
        {"conduit": "friends/alice", "says": "friend", "tuples": [["bob"]]},
        {"conduit": "population", "says": "home", "tuples": homes},
    ]
    (directory / "facts" / "population.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    (directory / "queries.txt").write_text("".join(f"tïtle {number} & co\n" for number in range(queries)))
    return directory
