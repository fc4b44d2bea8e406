# SPDX-License-Identifier: BSD-2-Clause
"""Files with which a Grafana finds the boards by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from dashboards.grafana.exclusions import EXCLUSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboards.model import Board

_HEADING = "# SPDX-License-Identifier: BSD-2-Clause\n# Written by make dashboards; see docs/dashboards.md.\n"
_PLACE = "/var/lib/grafana/dashboards/shai"
_FOLDER = "Shai"


def _yaml(*documents: Any) -> str:
    return _HEADING + yaml.safe_dump_all(documents, sort_keys=False, width=120)


def provider() -> str:
    """Return a provisioning file for /etc/grafana/provisioning/dashboards."""
    return _yaml({
        "apiVersion": 1,
        "providers": [
            {"name": "shai", "type": "file", "folder": _FOLDER, "folderUid": "shai", "options": {"path": _PLACE}}
        ],
    })  # fmt: skip


def kustomization(boards: Sequence[Board]) -> str:
    """Return what makes a ConfigMap of each board, with the label that Grafana's sidecar looks for."""
    return _yaml({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "configMapGenerator": [
            {"name": f"{board.uid}-dashboard", "files": [f"{board.uid}.json"]} for board in boards
        ],
        "generatorOptions": {
            "disableNameSuffixHash": True,
            "labels": {"app.kubernetes.io/part-of": "shai", "grafana_dashboard": "1"},
            "annotations": {"grafana_folder": _FOLDER},
        },
    })  # fmt: skip


def custom_resources(boards: Sequence[Board]) -> str:
    """Return an object for each board by which the Grafana operator finds its ConfigMap."""
    return _yaml(*(
        {
            "apiVersion": "grafana.integreatly.org/v1beta1",
            "kind": "GrafanaDashboard",
            "metadata": {"name": board.uid, "labels": {"app.kubernetes.io/part-of": "shai"}},
            "spec": {
                "instanceSelector": {"matchLabels": {"dashboards": "grafana"}},
                "folder": _FOLDER,
                "configMapRef": {"name": f"{board.uid}-dashboard", "key": f"{board.uid}.json"},
            },
        }
        for board in boards
    ))  # fmt: skip


def exclusions() -> str:
    """Return the configuration of Grafana's dashboard-linter, which looks for it beside the boards."""
    return _yaml({"exclusions": {rule: {"reason": reason} for rule, reason in EXCLUSIONS.items()}})
