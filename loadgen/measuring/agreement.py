# SPDX-License-Identifier: BSD-2-Clause
"""Whether a member and its twin in mode baseline do the same work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.driving.protocol import search_once
from loadgen.measuring.measurement import MeasurementError

if TYPE_CHECKING:
    from loadgen.datasets.population import Population
    from loadgen.stacks.stack import Stack

_QUERIES, _RESULTS = 5, 50


def find_the_same(confined: Stack, twin: Stack, people: Population) -> bool:
    """Return whether member and twin find the same documents; False if the search engine picks them at random.

    MeasurementError if the member finds what the twin does not: their costs could not be compared.
    """
    person = people.people[0]
    for query in people.queries[:_QUERIES]:
        found, usual, again = (
            {result["title"] for result in search_once(stack.front_end, person, query, _RESULTS)["results"]}
            for stack in (confined, twin, twin)
        )
        if usual != again:
            return False
        # Without enforcement a search may return more results, never fewer.
        if not found <= usual:
            missing = min(found - usual)
            remedy = "its index is not of these data; run its indexer again"
            raise MeasurementError(
                f"searching {query!r} the member finds {missing!r} and a twin on its data does not: {remedy}",
                public=f"the member finds a document that a twin on its data does not: {remedy}",
            )
    return True
