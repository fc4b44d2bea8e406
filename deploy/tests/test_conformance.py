# SPDX-License-Identifier: BSD-2-Clause
"""All manifests against strict schemas of the API server's kinds, with kubeconform, which reports unknown fields."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testing.cluster import ROOT

if TYPE_CHECKING:
    from testing.cluster import Cluster

FOLDERS = (
    "crds", "crds/examples/kinds", "crds/examples/minimal", "crds/examples/syse", "deploy", "deploy/monitoring",
    "deploy/monitoring/services", "deploy/benchmarks", "deploy/shards",
)  # fmt: skip
_FOREIGN = Path(__file__).parent / "schemas"
"""What is used of kinds that are not served here: those of the Prometheus operator."""
_SECONDS = 300


def kubeconform(schemas: Path, manifests: str) -> subprocess.CompletedProcess[str]:
    command = ["go", "-C", str(ROOT / "devcluster" / "tools"), "tool", "kubeconform", "-strict", "-summary"]
    for folder in (schemas, _FOREIGN):
        command += ["-schema-location", f"{folder}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"]
    command.append("-")
    return subprocess.run(command, input=manifests, capture_output=True, text=True, timeout=_SECONDS, check=False)


@pytest.mark.parametrize("folder", FOLDERS)
def test_manifests_conform(devcluster: Cluster, schemas: Path, folder: str) -> None:
    done = kubeconform(schemas, devcluster.kubectl("kustomize", str(ROOT / folder)))
    assert done.returncode == 0, done.stdout
    assert "Invalid: 0, Errors: 0, Skipped: 0" in done.stdout


def test_examples_that_stand_alone_conform(schemas: Path) -> None:
    for file in (ROOT / "deploy" / "examples").glob("*.yaml"):
        done = kubeconform(schemas, file.read_text())
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("replicas: 3", "replicas: three"), ("provider: local", "provder: local"), ("provider: local", "provider: cloud")],
)
def test_a_typo_does_not_conform(devcluster: Cluster, schemas: Path, right: str, wrong: str) -> None:
    manifests = devcluster.kubectl("kustomize", str(ROOT / "crds" / "examples" / "minimal"))
    assert right in manifests
    done = kubeconform(schemas, manifests.replace(right, wrong))
    assert (done.returncode, "Invalid: 1" in done.stdout) == (1, True), done.stdout


@pytest.mark.parametrize(
    ("folder", "right", "wrong"),
    [
        ("monitoring", "httpSDConfigs", "httpSdConfigs"),
        ("monitoring", "scheme: HTTPS", "scheme: https"),
        ("monitoring", "keySecret", "key"),
        ("monitoring", "podMetricsEndpoints", "endpoints"),
        ("monitoring/services", "action: labeldrop", "action: dropLabel"),
    ],
)
def test_a_typo_in_a_foreign_kind_does_not_conform(
    devcluster: Cluster, schemas: Path, folder: str, right: str, wrong: str
) -> None:
    manifests = devcluster.kubectl("kustomize", str(ROOT / "deploy" / folder))
    assert right in manifests
    done = kubeconform(schemas, manifests.replace(right, wrong))
    assert (done.returncode, "Invalid: 1" in done.stdout) == (1, True), done.stdout
