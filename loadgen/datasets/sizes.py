# SPDX-License-Identifier: BSD-2-Clause
"""The number of documents and users at each size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dataset:
    """A corpus with its users."""

    name: str
    corpus: str
    """The source of the text: "gcide" (Debian's dict-gcide) or "generated" (from the seed)."""
    documents: int
    users: int
    friends: int


DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("smoke", "gcide", documents=2_000, users=300, friends=20),
        Dataset("quick", "gcide", documents=25_000, users=2_000, friends=100),
        Dataset("standard", "gcide", documents=120_000, users=10_000, friends=100),
        Dataset("paper", "generated", documents=1_000_000, users=40_000, friends=100),
    )
}
