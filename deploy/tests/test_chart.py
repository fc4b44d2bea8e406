# SPDX-License-Identifier: BSD-2-Clause
"""The chart: what Helm makes of it with several values, and values that it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from crds import generated, kinds
from deploy import generate
from deploy.chart_rendering import CHART, KUBERNETES, NAMESPACE, HelmError, by_template, helm, render
from deploy.tests.test_conformance import kubeconform
from shai_operator.__main__ import parser
from testing.cluster import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from testing.cluster import Cluster

DIGEST = "sha256:" + "0123456789abcdef" * 4
IMAGE = {"repository": "registry.example.org:5000/team/shai-operator", "digest": DIGEST}
VALUES: dict[str, dict[str, Any]] = {
    "the least": {},
    "all": {
        "image": {**IMAGE, "tag": "0.1.0", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "replicas": 3,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}]}}},
        "priorityClassName": "system-cluster-critical",
        "serviceAccount": {"name": "other", "annotations": {"example.org/role": "shai"}},
        "podAnnotations": {"example.org/team": "privacy"},
        "extraArgs": ["--workers=8", "--cluster=west"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.org:3128"}],
        "logFormat": "text",
        "loginSecrets": ["rack-1", "rack-2"],
        "metrics": {"secret": "scraping"},
        "webhooks": {"failurePolicy": "Ignore", "timeoutSeconds": 5},
        "networkPolicy": {"egressPorts": [443, 2222]},
    },
    "an account that exists, and no network policy": {
        "serviceAccount": {"create": False, "name": "given"},
        "networkPolicy": {"enabled": False},
    },
}  # fmt: skip
BY_HAND = {"kustomization.yaml", "namespace.yaml"}
"""Files of the kustomization that are not written from the chart."""
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no image", {"image": {}}, "digest"),
    ("a tag alone", {"image": {"repository": "shai-operator", "tag": "1", "digest": ""}}, "/image/digest"),
    ("a tag in the name", {"image": {**IMAGE, "repository": "example.org/shai-operator:1"}}, "/image/repository"),
    ("a digest that is none", {"image": {**IMAGE, "digest": "sha256:abc"}}, "/image/digest"),
    ("a value that does not exist", {"replica": 3}, "replica"),
    ("a typo further down", {"networkPolicy": {"enable": True}}, "/networkPolicy"),
    ("no replicas", {"replicas": 0}, "/replicas"),
    ("a number as text", {"replicas": "two"}, "/replicas"),
    ("another failure policy", {"webhooks": {"failurePolicy": "Sometimes"}}, "/webhooks/failurePolicy"),
    ("the namespace as a variable", {"extraEnv": [{"name": "NAMESPACE", "value": "x"}]}, "/extraEnv/0/name"),
    ("an argument that is none", {"extraArgs": ["--workers", "8"]}, "/extraArgs/1"),
    ("all Secrets", {"loginSecrets": ["*"]}, "/loginSecrets/0"),
    ("a port that is none", {"networkPolicy": {"egressPorts": [0]}}, "/networkPolicy/egressPorts/0"),
]


def values(changed: dict[str, Any]) -> str:
    return yaml.safe_dump({"image": IMAGE, **changed})


def objects(rendered: str) -> list[dict[str, Any]]:
    return [obj for obj in yaml.safe_load_all(rendered) if obj]


def only(rendered: str, kind: str) -> dict[str, Any]:
    (found,) = [obj for obj in objects(rendered) if obj["kind"] == kind and "shai-operator" in obj["metadata"]["name"]]
    return found


def pod(rendered: str) -> dict[str, Any]:
    found = only(rendered, "Deployment")["spec"]["template"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("changed", VALUES.values(), ids=VALUES)
def test_what_helm_makes_conforms(schemas: Path, changed: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(values(changed))
    assert "0 chart(s) failed" in helm(
        "lint", str(CHART), "--strict", KUBERNETES, "--values", str(tmp_path / "values.yaml")
    )
    rendered = render(values(changed))
    done = kubeconform(schemas, rendered)
    assert done.returncode == 0, done.stdout
    assert "Invalid: 0, Errors: 0, Skipped: 0" in done.stdout


@pytest.mark.parametrize(("changed", "place"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_values_that_mean_nothing_are_refused(changed: dict[str, Any], place: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(values(changed))
    assert "values don't meet the specifications of the schema" in str(refused.value)
    assert place in str(refused.value)


def test_every_value_does_what_its_description_says() -> None:
    rendered = render(values(VALUES["all"]))
    template = pod(rendered)
    spec, (container,) = template["spec"], template["spec"]["containers"]
    assert container["image"] == f"registry.example.org:5000/team/shai-operator:0.1.0@{DIGEST}"
    assert container["imagePullPolicy"] == "Always"
    assert only(rendered, "Deployment")["spec"]["replicas"] == 3
    for key in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert spec[key] == VALUES["all"][key]
    for limit, quantities in VALUES["all"]["resources"].items():
        assert quantities.items() <= container["resources"][limit].items()
    assert template["metadata"]["annotations"] == {"example.org/team": "privacy"}
    assert spec["serviceAccountName"] == "other"
    options = parser().parse_args(container["args"])
    assert (options.workers, options.cluster, options.log_format, options.scrape_secret) == (
        8,
        "west",
        "text",
        "scraping",
    )
    assert {"name": "HTTPS_PROXY", "value": "http://proxy.example.org:3128"} in container["env"]
    named = [rule["resourceNames"] for rule in only(rendered, "Role")["rules"] if "resourceNames" in rule]
    assert named == [["shai-authority"], ["scraping"], ["rack-1", "rack-2"]]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert only(rendered, kind)["subjects"] == [{"kind": "ServiceAccount", "name": "other", "namespace": NAMESPACE}]
    (webhooks,) = [obj["webhooks"] for obj in objects(rendered) if obj["kind"] == "ValidatingWebhookConfiguration"]
    assert {(webhook["failurePolicy"], webhook["timeoutSeconds"]) for webhook in webhooks} == {("Ignore", 5)}
    _, egress = only(rendered, "NetworkPolicy")["spec"]["egress"]
    assert [port["port"] for port in egress["ports"]] == [443, 2222]

    given = render(values(VALUES["an account that exists, and no network policy"]))
    assert {"ServiceAccount", "NetworkPolicy"}.isdisjoint(obj["kind"] for obj in objects(given))
    assert pod(given)["spec"]["serviceAccountName"] == "given"


def test_every_value_is_described_and_has_a_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(described: dict[str, Any], known: dict[str, Any]) -> None:
        for name, value in described["properties"].items():
            assert value.get("description"), name
            if name != "global":
                assert name in known
            if "properties" in value:
                compare(value, known[name])
        assert known.keys() <= described["properties"].keys()

    del schema["properties"]["resources"]["properties"]  # requests and limits are Kubernetes'
    compare(schema, defaults)


def test_the_chart_has_what_the_kustomization_has(devcluster: Cluster) -> None:
    """The namespace apart, which Helm makes (``--create-namespace``)."""

    def named(rendered: str) -> dict[tuple[str, str], dict[str, Any]]:
        return {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects(rendered) if obj["kind"] != "Namespace"}

    applied = named(devcluster.kubectl("kustomize", str(ROOT / "deploy")))
    chart = named(render(values({})) + helm("show", "crds", str(CHART)))
    assert chart.keys() == applied.keys()
    differ = {key for key in chart if chart[key] != applied[key]}
    assert differ == {("Deployment", "shai-operator")}, "its image"
    assert len([kind for kind, _ in chart if kind == "CustomResourceDefinition"]) == len(kinds.ALL)
    assert ("ValidatingAdmissionPolicy", "policyrevisions.shai.dev") in chart


def test_the_api_server_takes_all_of_it(devcluster: Cluster) -> None:
    rendered = [
        obj for obj in objects(render(values(VALUES["all"]))) if obj["kind"] != "ValidatingWebhookConfiguration"
    ]
    devcluster.try_kubectl("create", "namespace", NAMESPACE)
    apply = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
    devcluster.kubectl(*apply, stdin=yaml.safe_dump_all(rendered))


def test_the_kustomization_is_written_from_the_chart() -> None:
    assert generate.main(["--check"]) == 0, "run .venv/bin/python -m deploy.generate"
    folder = ROOT / "deploy" / "operator"
    assert set(generate.files()) == {path for path in folder.rglob("*.yaml") if path.name not in BY_HAND}


def test_a_file_that_has_drifted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "operator" / "role.yaml"
    stale.parent.mkdir()
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "files", lambda: {stale: "new"})
    assert generate.main(["--check"]) == 1
    assert "operator/role.yaml is not what deploy/chart says" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert stale.read_text() == "new"


def test_objects_of_one_template_stay_together() -> None:
    rendered = "---\n# Source: shai/templates/b.yaml\nb: 1\n---\n# Source: shai/templates/a.yaml\na: 1\n"
    more = "---\n# Source: shai/templates/b.yaml\nb: 2\n"
    assert by_template(rendered + more) == {"templates/b.yaml": "b: 1\n---\nb: 2\n", "templates/a.yaml": "a: 1\n"}
