# SPDX-License-Identifier: BSD-2-Clause
"""Prometheus' configuration and rules, and the same rules for the Prometheus operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FILES = tuple(Path(__file__).with_name(name) for name in ("recording.yml", "alerts.yml"))

_HEADING = (
    "# SPDX-License-Identifier: BSD-2-Clause\n"
    "# Written by make dashboards from dashboards/rules; change it there.\n"
    "# yamllint disable rule:line-length\n"
)


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as such."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def groups() -> list[dict[str, Any]]:
    """Return all groups of rules."""
    return [group for file in FILES for group in yaml.safe_load(file.read_text())["groups"]]


def resource() -> str:
    """Return a PrometheusRule with all groups, as YAML."""
    labels = {"app.kubernetes.io/name": "shai", "app.kubernetes.io/part-of": "shai"}
    body = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "shai", "labels": labels},
        "spec": {"groups": groups()},
    }
    return _HEADING + yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)
