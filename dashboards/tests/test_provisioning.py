# SPDX-License-Identifier: BSD-2-Clause
"""Files with which a Grafana finds the boards by itself."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import yaml

from dashboards.boards import ALL
from dashboards.generate import BOARDS, GENERATED

_APPLY_LIMIT = 262_144
"""Bytes of an object that kubectl apply keeps as an annotation."""


def config_maps() -> dict[str, dict[str, Any]]:
    command = ["kubectl", "kustomize", str(BOARDS)]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {found["metadata"]["name"]: found for found in yaml.safe_load_all(made)}


def test_every_board_has_a_config_map_for_the_sidecar() -> None:
    found = config_maps()
    assert len(found) == len(ALL)
    for board in ALL:
        made = found[f"{board.uid}-dashboard"]
        assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(made["data"][f"{board.uid}.json"])["uid"] == board.uid
        assert len(json.dumps(made)) < _APPLY_LIMIT, "kubectl apply refuses it"


def test_objects_of_the_grafana_operator_name_these_config_maps() -> None:
    found = config_maps()
    made = list(yaml.safe_load_all((GENERATED / "grafana-operator.yaml").read_text()))
    assert len(made) == len(ALL)
    for custom in made:
        source = custom["spec"]["configMapRef"]
        assert json.loads(found[source["name"]]["data"][source["key"]])["uid"] == custom["metadata"]["name"]


def test_titles_and_uids_are_those_of_the_boards() -> None:
    for board in ALL:
        made = json.loads((BOARDS / f"{board.uid}.json").read_text())
        assert (made["uid"], made["title"]) == (board.uid, f"Shai / {board.title}")
