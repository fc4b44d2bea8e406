# SPDX-License-Identifier: BSD-2-Clause
"""Renders what a virtual machine reads when it boots for the first time, as the Ansible role pool_vm does. Pure.

The templates in `firstboot` quote every value themselves, because the role renders them without this module. Values are
checked before (`images.machine`); quoting is the second line.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATES = Path(__file__).parent / "firstboot"
FILES = ("meta-data", "network-config", "user-data")
"""The files of a seed. Their names are those of cloud-init's data source NoCloud."""
VARIABLE = "pool_vm_first_boot"
"""The variable that templates read; it has the prefix of the role that sets it."""


def render(first_boot: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a virtual machine's seed; UndefinedError or TypeError if a value is missing."""
    # As Ansible's module template sets it up. The files are YAML, so nothing is escaped for HTML.
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    return {name: environment.get_template(f"{name}.j2").render({VARIABLE: first_boot}) for name in FILES}
