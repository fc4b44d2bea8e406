# SPDX-License-Identifier: BSD-2-Clause
"""The deployment and an API server: whether it is accepted, how the Pod is confined, what its parts refer to."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from shai_operator.__main__ import parser
from shai_operator.control.webhooks import NAME, VALIDATED
from shai_operator.metrics.targets import MONITOR_JOB
from shai_operator.reconcile.objects import PLURALS
from testing.cluster import ROOT
from testing.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from testing.cluster import Cluster

Things = list[dict[str, Any]]
DEPLOY = ROOT / "deploy"


def find(objects: Things, kind: str) -> dict[str, Any]:
    (found,) = [obj for obj in objects if obj["kind"] == kind]
    return found


def container(objects: Things) -> dict[str, Any]:
    (found,) = find(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_all_of_it_can_be_applied(devcluster: Cluster) -> None:
    """With the custom resources, and twice; the webhooks are really applied, and removed again."""
    applied = devcluster.kubectl("apply", "--server-side", "--validate=strict", "-k", str(DEPLOY)).splitlines()
    try:
        assert len([line for line in applied if line.startswith("customresourcedefinition")]) == len(PLURALS)
        assert "validatingwebhookconfiguration.admissionregistration.k8s.io/shai.dev serverside-applied" in applied
        until(devcluster.asks_webhooks, "the API server asks the webhooks")
        refused = devcluster.try_kubectl(
            "create", "-f", str(ROOT / "crds" / "examples" / "kinds" / "policy.yaml"), "--dry-run=server"
        )
        assert refused.returncode != 0, "with the operator away, nothing gets past the parser"
        assert 'failed calling webhook "policies.shai.dev"' in refused.stderr
    finally:
        devcluster.remove_webhooks()


def test_what_is_on_its_way_out_goes_while_the_operator_is_away(
    devcluster: Cluster, namespace: str, rendered: Things
) -> None:
    policy = {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "leaving", "namespace": namespace, "finalizers": ["example.org/last"]},
        "spec": {"text": "policy leaving { read :- true. }"},
    }
    devcluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(policy))
    webhooks = find(rendered, "ValidatingWebhookConfiguration")
    devcluster.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(webhooks))
    try:
        until(devcluster.asks_webhooks, "the API server asks the webhooks")
        devcluster.kubectl("delete", "policy", "leaving", "-n", namespace, "--wait=false")
        patch = ("--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        devcluster.kubectl("patch", "policy", "leaving", "-n", namespace, *patch)
        assert devcluster.kubectl("get", "policies", "-n", namespace, "-o", "name") == ""
    finally:
        devcluster.remove_webhooks()


def test_the_pod_keeps_to_the_strictest_standard(deployed: Cluster, rendered: Things) -> None:
    """Namespaces enforce the standard: a Pod that violates it could not be created."""
    template = find(rendered, "Deployment")["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", **template["metadata"]},
        "spec": template["spec"],
    }
    create = ("create", "-n", "shai-system", "--dry-run=server", "-f", "-")
    deployed.kubectl(*create, stdin=yaml.safe_dump(pod))
    pod["spec"]["containers"][0]["securityContext"]["capabilities"] = {"drop": []}

    def refused() -> bool:
        return 'violates PodSecurity "restricted' in deployed.try_kubectl(*create, stdin=yaml.safe_dump(pod)).stderr

    until(refused, "the namespace enforces the standard: admission learns of its labels a moment after they are stored")
    assert container(rendered)["securityContext"]["readOnlyRootFilesystem"] is True


def test_one_replica_may_go_and_admission_does_not(rendered: Things) -> None:
    deployment, budget = find(rendered, "Deployment")["spec"], find(rendered, "PodDisruptionBudget")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert budget["maxUnavailable"] == 1
    labels = deployment["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    for spread in deployment["template"]["spec"]["topologySpreadConstraints"]:
        assert spread["labelSelector"]["matchLabels"].items() <= labels.items()
        assert spread["whenUnsatisfiable"] == "ScheduleAnyway", "a cluster of one node has both"
    waits = container(rendered)["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert waits < deployment["template"]["spec"]["terminationGracePeriodSeconds"]


def test_the_command_line_is_one_that_the_operator_knows(rendered: Things) -> None:
    options = parser().parse_args(container(rendered)["args"])
    ports = {port["name"]: port["containerPort"] for port in container(rendered)["ports"]}
    assert options.probes == ("0.0.0.0", ports["metrics"])  # noqa: S104 - the Pod's own network
    assert options.webhooks == ("0.0.0.0", ports["webhooks"])  # noqa: S104
    service = find(rendered, "Service")["metadata"]
    assert options.webhook_host == f"{service['name']}.{service['namespace']}.svc"


def test_probes_and_services_name_ports_that_there_are(rendered: Things) -> None:
    names = {port["name"] for port in container(rendered)["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container(rendered)[probe]["httpGet"]["port"] in names
    service = find(rendered, "Service")
    assert {port["targetPort"] for port in service["spec"]["ports"]} == names
    labels = find(rendered, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    policy = find(rendered, "NetworkPolicy")["spec"]
    for selector in (service["spec"]["selector"], policy["podSelector"]["matchLabels"]):
        assert selector.items() <= labels
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == names


def monitoring(path: str) -> dict[str, Any]:
    """Read an object for the Prometheus operator."""
    found = yaml.safe_load((DEPLOY / "monitoring" / path).read_text())
    assert isinstance(found, dict)
    return found


def test_the_service_monitor_finds_the_service(rendered: Things) -> None:
    monitor, service = monitoring("services/servicemonitor.yaml")["spec"], find(rendered, "Service")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][monitor["jobLabel"]] == "shai-operator"
    assert {endpoint["port"] for endpoint in monitor["endpoints"]} <= {
        endpoint["name"] for endpoint in service["spec"]["ports"]
    }


def test_the_pod_monitor_finds_the_pod(rendered: Things) -> None:
    monitor = monitoring("pods/podmonitor.yaml")["spec"]
    labels = find(rendered, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert labels[monitor["jobLabel"]] == "shai-operator"
    ports = {port["name"] for port in container(rendered)["ports"]}
    assert {endpoint["port"] for endpoint in monitor["podMetricsEndpoints"]} <= ports


def test_members_are_scraped_where_the_operator_says_and_with_its_secret(rendered: Things) -> None:
    config = monitoring("members/scrapeconfig.yaml")["spec"]
    service = find(rendered, "Service")
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    (port,) = [port["port"] for port in service["spec"]["ports"] if port["name"] == "metrics"]
    assert [discovery["url"] for discovery in config["httpSDConfigs"]] == [
        f"http://{host}:{port}/targets?job={config['jobName']}"
    ]
    assert config["jobName"] == MONITOR_JOB
    tls = config["tlsConfig"]
    used = [tls["ca"]["secret"], tls["cert"]["secret"], tls["keySecret"]]
    secret = parser().parse_args(container(rendered)["args"]).scrape_secret
    assert used == [{"name": secret, "key": key} for key in ("ca.crt", "tls.crt", "tls.key")]
    allowed = [rule for rule in find(rendered, "Role")["rules"] if rule.get("resourceNames") == [secret]]
    assert [rule["verbs"] for rule in allowed] == [["patch"]]


def test_prometheus_takes_what_the_scrape_configuration_becomes(tmp_path: Path) -> None:
    """As the Prometheus operator translates it: the Secret's keys become files."""
    config = monitoring("members/scrapeconfig.yaml")["spec"]
    tls = {name: tmp_path / key for name, key in (("ca_file", "ca"), ("cert_file", "cert"), ("key_file", "keySecret"))}
    for file in tls.values():
        file.touch()
    job = {
        "job_name": config["jobName"],
        "scheme": config["scheme"].lower(),
        "metrics_path": config["metricsPath"],
        "scrape_interval": config["scrapeInterval"],
        "http_sd_configs": [
            {"url": one["url"], "refresh_interval": one["refreshInterval"]} for one in config["httpSDConfigs"]
        ],
        "tls_config": {name: str(file) for name, file in tls.items()},
    }
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump({"scrape_configs": [job]}))
    command = ["promtool", "check", "config", "--syntax-only", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def test_webhooks_are_those_that_the_operator_answers(rendered: Things) -> None:
    configuration = find(rendered, "ValidatingWebhookConfiguration")
    assert configuration["metadata"]["name"] == NAME
    service = find(rendered, "Service")
    asked = {}
    for webhook in configuration["webhooks"]:
        (rule,) = webhook["rules"]
        (plural,) = rule["resources"]
        asked[plural] = webhook["name"]
        reference = webhook["clientConfig"]["service"]
        assert (reference["name"], reference["namespace"]) == (service["metadata"]["name"], "shai-system")
        assert reference["path"] == f"/{plural}"
        assert reference["port"] in {port["port"] for port in service["spec"]["ports"]}
        assert (webhook["failurePolicy"], webhook["sideEffects"], rule["operations"]) == (
            "Fail",
            "None",
            ["CREATE", "UPDATE"],
        )
    assert asked == {plural: f"{plural}.{NAME}" for plural in VALIDATED}


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(DEPLOY.rglob("*.yaml")) if "chart" not in file.relative_to(DEPLOY).parts],
    ids=lambda path: str(path.relative_to(DEPLOY)),
)
def test_every_file_is_in_a_kustomization_or_an_example(file: Any) -> None:
    if file.name == "kustomization.yaml" or file.parent.name == "examples":
        return
    kustomization = yaml.safe_load((file.parent / "kustomization.yaml").read_text())
    assert file.name in kustomization["resources"]


def test_the_container_is_built_from_what_there_is_and_runs_as_nobody() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    joined = text.replace("\\\n", " ")
    for line in re.findall(r"^COPY (?!--from)(.*)$", joined, re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists() or source.startswith("build/"), source
    assert re.search(r"^USER 65532:65532$", text, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.search(r"^ARG BASE$", text, re.MULTILINE), "no default: the builder names it by its digest"
    assert 'RUN test -n "${SNAPSHOT}" && test -n "${ARCHIVE}"' in text, "no package of another day"
    assert "--require-hashes" in text
