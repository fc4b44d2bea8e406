# SPDX-License-Identifier: BSD-2-Clause
"""A role's defaults are written twice: Ansible uses defaults/main.yml, and documents argument_specs.yml."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).parents[3] / "ansible" / "roles"


@pytest.mark.parametrize("role", sorted(path.name for path in ROLES.iterdir()))
def test_defaults_are_those_of_the_specs(role: str) -> None:
    specs = yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    options = {name: option for entry in specs.values() for name, option in entry["options"].items()}
    described = {name: option["default"] for name, option in options.items() if "default" in option}
    taken = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())
    assert taken == described, (
        f"defaults/main.yml and meta/argument_specs.yml of {role} differ: give each default in both files"
    )
    assert all(name.startswith(f"{role}_") for name in options), f"variables of {role} begin with {role}_"
