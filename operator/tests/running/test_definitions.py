# SPDX-License-Identifier: BSD-2-Clause
"""Definitions of users, with a real API server and the real parser; no pool has a member here."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.reconcile.objects import PLURALS
from testing.cluster import path_of
from testing.operators import Operator
from testing.waiting import until
from tests.running.objects import (
    OPEN,
    await_condition,
    condition,
    events,
    message,
    pipeline,
    policy,
    read,
    resource,
    serving,
    task,
)
from tests.running.objects import apply as apply_all

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from testing.cluster import Cluster


@pytest.fixture(scope="module", autouse=True)
def operator(devcluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with Operator(devcluster, tmp_path_factory.mktemp("operator") / "log") as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def pool(devcluster: Cluster) -> Iterator[Callable[[str], str]]:
    """Make pools without members; each serves one namespace."""
    made: list[str] = []

    def make(namespace: str) -> str:
        name = f"pool-{namespace}"
        apply_all(devcluster, namespace, serving(namespace, name))
        made.append(name)
        return name

    yield make
    for name in made:
        devcluster.delete("jailpool", name)


def test_a_policy_gets_revisions_and_keeps_its_history(devcluster: Cluster, namespace: str) -> None:
    for number in range(4):
        text = OPEN.format(name="p") + f"# {number}\n"
        apply_all(devcluster, namespace, policy("p", text, revisionHistoryLimit=2))
        until(
            lambda want=number + 1: (
                ((read(devcluster, "Policy", namespace, "p") or {}).get("status") or {}).get("latestRevision") == want
            ),
            f"revision {number + 1}",
        )
    found = read(devcluster, "Policy", namespace, "p")
    assert condition(found, "Accepted") == ("True", "Accepted")
    assert condition(found, "Ready") == ("True", "Unused")

    def numbers() -> list[int]:
        listed = json.loads(devcluster.kubectl("-n", namespace, "get", "policyrevisions", "-o", "json"))["items"]
        return sorted(revision["spec"]["revision"] for revision in listed)

    until(lambda: numbers() == [2, 3, 4], "the oldest revision is dropped")
    devcluster.kubectl("-n", namespace, "delete", "policy", "p")
    until(lambda: numbers() == [], "the revisions go with the policy")


def test_text_that_does_not_parse_is_refused_with_its_place(devcluster: Cluster, namespace: str) -> None:
    bad = json.dumps(policy("p", "policy p {\n  read :- nope(X).\n}\n"))
    done = devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=bad)
    assert done.returncode != 0
    assert "spec.text:2:11" in done.stderr
    assert "nope" in done.stderr


def test_a_policy_includes_others_of_its_namespace_in_whatever_order_they_come(
    devcluster: Cluster, namespace: str, new_namespace: Callable[[], str]
) -> None:
    def text() -> str:
        listed = json.loads(devcluster.kubectl("-n", namespace, "get", "policyrevisions", "-o", "json"))["items"]
        own = [one["spec"] for one in listed if one["spec"]["policy"] == "p"]
        return str(max(own, key=lambda one: int(one["revision"]))["text"]) if own else ""

    base = 'policy base {{ read :- sKeyIs("{name}"). }}'
    apply_all(devcluster, new_namespace(), policy("base", base.format(name="stranger")))
    apply_all(devcluster, namespace, policy("p", "policy p includes base { }"))
    found = await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("False", "IncludeMissing"))
    assert "there is no policy base to include" in message(found, "Accepted")
    for person in ("ada", "bob"):
        apply_all(devcluster, namespace, policy("base", base.format(name=person)))
        want = f'policy p {{\n  read :- sKeyIs("{person}").\n}}\n'
        until(lambda want=want: text() == want, f"its revision is {want}; it is {text()}")
    await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
    apply_all(devcluster, namespace, policy("base", "policy base includes p { }"))
    await_condition(devcluster, "Policy", namespace, "base", "Accepted", ("False", "Invalid"))
    found = await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("False", "Invalid"))
    assert "includes" in message(found, "Accepted")
    assert "bob" in text(), "what was in force stays"
    devcluster.kubectl("-n", namespace, "delete", "policy", "base")
    await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("False", "IncludeMissing"))
    assert "bob" in text()


def test_a_threshold_that_cannot_be_read_is_refused_with_its_place(devcluster: Cluster, namespace: str) -> None:
    good = resource("Benchmark", "cost", pipeline="p", thresholds=["overhead>5%"])
    bad = resource("Benchmark", "cost", pipeline="p", thresholds=["overhead>5%", "p99>5%", 'p50 "><script>'])
    done = devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(bad))
    assert done.returncode != 0
    assert "spec.thresholds[1]: 'p99>5%': at character 6: p99 is a time: expected 'us'" in done.stderr
    assert "spec.thresholds[2]: " in done.stderr
    apply_all(devcluster, namespace, good)
    assert devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(bad)).returncode != 0


def test_a_task_that_would_never_start_is_refused(
    devcluster: Cluster, namespace: str, pool: Callable[[str], str]
) -> None:
    itself = json.dumps(task("itself", "open", raisesTo=["itself"]))
    done = devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=itself)
    assert done.returncode != 0
    assert "spec.raisesTo[0]: a task raises its taint to that of another task, not to its own; remove it" in done.stderr
    apply_all(  # each for itself could be right
        devcluster,
        namespace,
        policy("open"),
        task("drafting", "open", raisesTo=["personal"]),
        task("personal", "open", raisesTo=["drafting"]),
        pipeline("p", ["drafting", "personal"], "/a/**", "open", pool=pool(namespace)),
    )
    found = await_condition(devcluster, "Pipeline", namespace, "p", "Accepted", ("False", "Invalid"))
    assert "drafting becomes personal, which becomes drafting" in message(found, "Accepted")
    assert "remove it, or name one of them in raisesTo of a task that starts" in message(found, "Accepted")
    apply_all(devcluster, namespace, task("personal", "open"))
    await_condition(devcluster, "Pipeline", namespace, "p", "Accepted", ("True", "Accepted"))


def test_a_task_that_becomes_an_unknown_one_is_refused(
    devcluster: Cluster, namespace: str, pool: Callable[[str], str]
) -> None:
    apply_all(
        devcluster,
        namespace,
        policy("open"),
        task("drafting", "open", raisesTo=["persnal"]),
        pipeline("p", ["drafting"], "/a/**", "open", pool=pool(namespace)),
    )
    found = await_condition(devcluster, "Pipeline", namespace, "p", "Accepted", ("False", "Invalid"))
    assert 'spec.raisesTo[0]: "persnal" is not one of the tasks of pipeline ' in message(found, "Accepted")


@pytest.mark.parametrize("word", ["{{ 7*7 }}", "$(id) x", "../x", "-x", "a;b", "x y"])
def test_what_means_something_to_jinja_shells_paths_or_options_is_no_name(
    devcluster: Cluster, namespace: str, word: str
) -> None:
    def refusal(body: dict[str, Any]) -> str:
        space = "" if body["kind"] == "JailPool" else namespace
        path = path_of("shai.dev/v1alpha1", PLURALS[body["kind"]], space)
        answer = devcluster.request("POST", path, body, dryRun="All")
        assert answer.status_code in (403, 422), answer.text
        return str(answer.json()["message"])

    assert "metadata.name is not a name; expected" in refusal(policy(word))
    assert "spec.tasks[0] in body should match" in refusal(pipeline("p", [word], "/a/**", "open", pool="x"))
    assert "begin it with /" in refusal(task("t", "open", command=[f"bin/{word}"]))
    pool = resource("JailPool", "pool", provider="local", image=word, directory=word)
    assert "spec.image in body should match" in refusal(pool)
    assert "spec.directory in body should match" in refusal(pool)


def facts(kibibytes: int) -> str:
    """A FactSource of about this size."""
    tuples = [["x" * 1010, number] for number in range(kibibytes)]
    return json.dumps(
        resource("FactSource", "facts", inline=[{"conduit": "friends", "says": "friend", "tuples": tuples}])
    )


def test_facts_that_are_too_many_for_an_object_are_refused_with_a_remedy(devcluster: Cluster, namespace: str) -> None:
    def put(kibibytes: int) -> subprocess.CompletedProcess[str]:
        return devcluster.try_kubectl("-n", namespace, "apply", "--server-side", "-f", "-", stdin=facts(kibibytes))

    for most in 1000, 1001:  # an update's request holds both versions
        done = put(most)
        assert done.returncode == 0, done.stderr
    done = put(1100)
    assert done.returncode != 0
    assert "FactSource facts is too large" in done.stderr
    assert "1024 KiB is the most" in done.stderr
    assert "name a file, Redis or a URL" in done.stderr


def test_a_policy_that_is_only_tried_out_is_admitted_with_a_warning(devcluster: Cluster, namespace: str) -> None:
    done = devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(policy("p", mode="Audit")))
    assert done.returncode == 0
    assert "recorded, not denied" in done.stderr


def test_a_missing_task_is_named_until_it_is_there(
    devcluster: Cluster, namespace: str, pool: Callable[[str], str]
) -> None:
    apply_all(devcluster, namespace, policy("open"), pipeline("p", ["late"], "/a/**", "open", pool=pool(namespace)))
    found = await_condition(devcluster, "Pipeline", namespace, "p", "Accepted", ("False", "TaskMissing"))
    assert f"no Task late in namespace {namespace}; apply it" in message(found, "Accepted")
    until(
        lambda: [event for event in events(devcluster, namespace, "p") if event["reason"] == "TaskMissing"],
        "an event says so",
    )
    apply_all(devcluster, namespace, task("late", "open"))
    await_condition(devcluster, "Pipeline", namespace, "p", "Accepted", ("True", "Accepted"))
    used = until(lambda: (read(devcluster, "Task", namespace, "late") or {}).get("status", {}).get("usedBy"), "usedBy")
    assert used == ["p"]


def test_of_two_pipelines_that_claim_one_path_the_older_goes_on(
    devcluster: Cluster, namespace: str, pool: Callable[[str], str]
) -> None:
    name = pool(namespace)
    apply_all(
        devcluster, namespace, policy("open"), task("t", "open"), pipeline("z-old", ["t"], "/a/**", "open", pool=name)
    )
    await_condition(devcluster, "Pipeline", namespace, "z-old", "Accepted", ("True", "Accepted"))
    until(lambda: _second_has_passed(devcluster, namespace), "creation times differ")
    apply_all(devcluster, namespace, task("u", "open"), pipeline("a-new", ["u"], "/a/b/*", "open", pool=name))
    found = await_condition(devcluster, "Pipeline", namespace, "a-new", "Accepted", ("False", "PathConflict"))
    assert "z-old" in message(found, "Accepted")
    assert condition(read(devcluster, "Pipeline", namespace, "z-old"), "Accepted") == ("True", "Accepted")
    devcluster.kubectl("-n", namespace, "delete", "pipeline", "z-old")
    await_condition(devcluster, "Pipeline", namespace, "a-new", "Accepted", ("True", "Accepted"))


def test_a_pipeline_that_cannot_run_keeps_no_other_from_its_paths(
    devcluster: Cluster, namespace: str, pool: Callable[[str], str]
) -> None:
    name = pool(namespace)
    apply_all(devcluster, namespace, policy("open"), pipeline("z-old", ["late"], "/a/**", "open", pool=name))
    await_condition(devcluster, "Pipeline", namespace, "z-old", "Accepted", ("False", "TaskMissing"))
    until(lambda: _second_has_passed(devcluster, namespace), "creation times differ")
    apply_all(devcluster, namespace, task("u", "open"), pipeline("a-new", ["u"], "/a/b/*", "open", pool=name))
    await_condition(devcluster, "Pipeline", namespace, "a-new", "RolledOut", ("True", "Complete"))
    apply_all(devcluster, namespace, task("late", "open"))
    found = await_condition(devcluster, "Pipeline", namespace, "z-old", "Accepted", ("False", "PathConflict"))
    assert "a-new" in message(found, "Accepted")
    assert condition(read(devcluster, "Pipeline", namespace, "a-new"), "Accepted") == ("True", "Accepted")


def test_a_pipeline_in_a_mode_that_its_pool_does_not_allow_keeps_no_other_from_its_paths(
    devcluster: Cluster, namespace: str, pool: Callable[[str], str]
) -> None:
    name = pool(namespace)
    old = pipeline("z-old", ["t"], "/a/**", "open", pool=name, mode="audit")
    apply_all(devcluster, namespace, policy("open"), task("t", "open"), old)
    await_condition(devcluster, "Pipeline", namespace, "z-old", "Accepted", ("False", "ModeNotAllowed"))
    until(lambda: _second_has_passed(devcluster, namespace), "creation times differ")
    apply_all(devcluster, namespace, task("u", "open"), pipeline("a-new", ["u"], "/a/b/*", "open", pool=name))
    await_condition(devcluster, "Pipeline", namespace, "a-new", "RolledOut", ("True", "Complete"))
    assert condition(read(devcluster, "Pipeline", namespace, "z-old"), "Accepted") == ("False", "ModeNotAllowed")
    apply_all(devcluster, namespace, serving(namespace, name, allowedModes=["audit", "shai"]))
    await_condition(devcluster, "Pipeline", namespace, "z-old", "Accepted", ("False", "PathConflict"))
    apply_all(devcluster, namespace, serving(namespace, name, allowedModes=["audit"]))
    await_condition(devcluster, "Pipeline", namespace, "z-old", "Accepted", ("True", "Accepted"))
    await_condition(devcluster, "Pipeline", namespace, "a-new", "Accepted", ("False", "ModeNotAllowed"))


def _second_has_passed(devcluster: Cluster, namespace: str) -> bool:
    """Whether an object made now has a later creation time than the pipeline; times are whole seconds."""
    devcluster.kubectl("-n", namespace, "delete", "configmap", "clock", "--ignore-not-found")
    devcluster.kubectl("-n", namespace, "create", "configmap", "clock")
    clock = json.loads(devcluster.kubectl("-n", namespace, "get", "configmap", "clock", "-o", "json"))
    old = read(devcluster, "Pipeline", namespace, "z-old")
    assert old is not None
    return bool(clock["metadata"]["creationTimestamp"] > old["metadata"]["creationTimestamp"])


def test_no_pool_is_said_plainly(devcluster: Cluster, namespace: str) -> None:
    apply_all(
        devcluster, namespace, policy("open"), task("t", "open"), pipeline("p", ["t"], "/a/**", "open", pool="nowhere")
    )
    found = await_condition(devcluster, "Pipeline", namespace, "p", "Accepted", ("False", "PoolMissing"))
    assert "no JailPool nowhere" in message(found, "Accepted")


def test_conditions_of_others_stay(devcluster: Cluster, namespace: str) -> None:
    apply_all(devcluster, namespace, policy("p"))
    await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
    own = {
        "type": "Reviewed",
        "status": "True",
        "reason": "ByLegal",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body = {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": "Policy",
        "metadata": {"name": "p"},
        "status": {"conditions": [own]},
    }
    answer = devcluster.request(
        "PATCH",
        f"/apis/shai.dev/v1alpha1/namespaces/{namespace}/policies/p/status",
        body,
        content_type="application/apply-patch+yaml",
        fieldManager="legal",
    )
    assert answer.status_code == 200, answer.text
    apply_all(devcluster, namespace, policy("p", OPEN.format(name="p") + "# changed\n"))
    until(
        lambda: (read(devcluster, "Policy", namespace, "p") or {})["status"]["latestRevision"] == 2,
        "the change is seen",
    )
    found = read(devcluster, "Policy", namespace, "p")
    assert condition(found, "Reviewed") == ("True", "ByLegal")
    assert condition(found, "Accepted") == ("True", "Accepted")


def test_the_largest_policy_gets_no_annotation_that_outgrows_its_limit(devcluster: Cluster, namespace: str) -> None:
    text = OPEN.format(name="p")
    large = policy("p", text + "#" * (65536 - len(text)))
    devcluster.kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(large))
    found = await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
    assert "annotations" not in found["metadata"]
    assert "finalizers" not in found["metadata"]


def test_while_the_operator_is_down_nothing_unchecked_gets_in(
    devcluster: Cluster, namespace: str, operator: Operator
) -> None:
    operator.stop()
    try:
        done = devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(policy("p")))
        assert done.returncode != 0
        assert "webhook" in done.stderr
    finally:
        operator.start()
    apply_all(devcluster, namespace, policy("p"))
    await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))


def test_an_operator_is_ready_when_it_has_told_the_api_server_to_ask_it(
    devcluster: Cluster, operator: Operator
) -> None:
    operator.stop()
    devcluster.kubectl("delete", "validatingwebhookconfiguration", "shai.dev")
    operator.start()
    path = path_of("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", name="shai.dev")
    assert devcluster.request("GET", path).status_code == 200


def child(parent: int, word: str) -> int:
    """Return the child process with this word in its command line."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    (found,) = [int(pid) for pid in children if word in Path(f"/proc/{pid}/cmdline").read_text()]
    return found


def test_when_the_parser_dies_it_is_started_again(devcluster: Cluster, namespace: str, operator: Operator) -> None:
    os.kill(child(operator.process.pid, "validate"), signal.SIGKILL)

    def admitted() -> bool:
        return (
            devcluster.try_kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(policy("p"))).returncode == 0
        )

    until(admitted, "policies are admitted again")
    await_condition(devcluster, "Policy", namespace, "p", "Accepted", ("True", "Accepted"))
