# SPDX-License-Identifier: BSD-2-Clause
"""Every file that is written from the query table and the boards."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboards import colours, provisioning, rules
from dashboards.boards import ALL
from dashboards.grafana.boards import document
from dashboards.queries import overhead, report

if TYPE_CHECKING:
    from dashboards.model import Panel

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ROOT / "dashboards" / "generated"
BOARDS = GENERATED / "boards"
PUBLISHED = ROOT / "dashboards" / "published"
EMBEDDED = ROOT / "monitor" / "internal" / "report"
"""A Go module cannot embed files of another folder, so `shai report` has copies."""
TABLE_I = ROOT / "loadgen" / "results" / "table1.json"
"""The load generator is installed without the dashboards, so it has a copy of the table that it prints."""


def _panel(panel: Panel) -> dict[str, Any]:
    """Return what `shai report` needs to draw a panel."""
    return {
        "id": panel.id,
        "title": panel.title,
        "description": panel.description,
        "unit": panel.unit,
        "kind": panel.kind.value,
        "instant": panel.kind.instant,
        "stacked": panel.stacked,
        "colours": panel.colours,
        "across": panel.across,
        "by": panel.by,
        "columns": [{"label": column.label, "title": column.title} for column in panel.columns],
        "queries": [
            {"expr": query.expr, "legend": query.legend, "unit": query.unit or panel.unit} for query in panel.queries
        ],
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _table(colours: dict[str, dict[str, dict[str, str]]]) -> str:
    """Return groups of colours as JSON, a colour in each line."""
    groups = (
        f'  "{group}": {{\n'
        + ",\n".join(f'    "{name}": {json.dumps(colour)}' for name, colour in members.items())
        + "\n  }"
        for group, members in colours.items()
    )
    return "{\n" + ",\n".join(groups) + "\n}\n"


def files() -> dict[Path, str]:
    """Return the content of every generated file."""
    made = {BOARDS / f"{board.uid}.json": _json(document(board)) for board in ALL}
    made[EMBEDDED / "boards" / "queries.json"] = _json(
        {
            "panels": [_panel(panel) for panel in overhead.PANELS],
            "beside": [_panel(panel) for panel in report.PANELS],
        }
    )
    made |= {EMBEDDED / "published" / "data" / file.name: file.read_text() for file in PUBLISHED.glob("*.json")}
    made[TABLE_I] = (PUBLISHED / "01-throughput.json").read_text()
    made[BOARDS / "kustomization.yaml"] = provisioning.kustomization(ALL)
    made[BOARDS / ".lint"] = provisioning.exclusions()
    made[GENERATED / "grafana-operator.yaml"] = provisioning.custom_resources(ALL)
    made[GENERATED / "provider.yaml"] = provisioning.provider()
    made[ROOT / "monitor" / "internal" / "look" / "colours.json"] = _table(colours.as_json())
    made[ROOT / "deploy" / "monitoring" / "prometheusrule.yaml"] = rules.resource()
    return made


def write(*, check: bool) -> int:
    """Write the files, or print which of them are not up to date. Return an exit code."""
    made = files()
    stale = {path: text for path, text in made.items() if not path.exists() or path.read_text() != text}
    there = {path for folder in (BOARDS, EMBEDDED / "published" / "data") for path in folder.glob("*")}
    abandoned = sorted(there - set(made))
    for path in abandoned:
        if check:
            print(f"{path.relative_to(ROOT)} comes from nothing in dashboards/: run make dashboards", file=sys.stderr)
        else:
            path.unlink()
            print(f"removed {path.relative_to(ROOT)}")
    for path, text in stale.items():
        if check:
            print(f"{path.relative_to(ROOT)} is not what dashboards/ says: run make dashboards", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and (stale or abandoned) else 0
