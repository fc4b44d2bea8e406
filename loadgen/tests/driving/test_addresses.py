# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from loadgen.tests.harness import ROOT

if TYPE_CHECKING:
    from loadgen.datasets.population import Population

EXAMPLE = ROOT / "crds" / "examples" / "syse"


def test_region_addresses_agree_with_the_examples_facts(people: Population) -> None:
    facts = list(yaml.safe_load_all((EXAMPLE / "facts.yaml").read_text()))
    prefixes = next(fact for fact in facts if fact["metadata"]["name"] == "regions")["spec"]["inline"][0]["tuples"]
    assert {region for _, region in prefixes} == set(people.regions)
    assert ["127.0.1.0/24", "de"] in prefixes
    assert ["127.0.2.0/24", "fr"] in prefixes
