# SPDX-License-Identifier: BSD-2-Clause
"""The harness's smaller parts: derived manifests, profiles, metrics, corpus, enforcement."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from loadgen import corpus, enforcement, manifests, monitor, stack, stores
from loadgen.plan import PLANS
from loadgen.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.population import Population
    from loadgen.tests.fake_syse import FakeSysE

EXAMPLE = Path(__file__).resolve().parents[2] / "crds" / "examples" / "syse" / "pipeline.yaml"

METRICS = """# HELP shai_sessions_total Sessions that have ended.
# TYPE shai_sessions_total counter
shai_sessions_total{mode="shai",pipeline="syse"} 7
# HELP shai_interceptions_total Times a task involved the reference monitor, by kind.
# TYPE shai_interceptions_total counter
shai_interceptions_total{kind="accept",pipeline="syse"} 24
shai_interceptions_total{kind="send",pipeline="syse"} 1e+06
shai_interceptions_total{kind="send",pipeline="syse-baseline"} 3
"""


def test_a_variant_differs_in_what_was_asked_and_in_nothing_else() -> None:
    example = manifests.read_pipeline(EXAMPLE)
    derived = manifests.derive(example, mode="baseline", listen="127.0.0.1:9999", fault="ignore-attributes")
    assert derived["spec"]["mode"] == "baseline"
    assert derived["spec"]["variables"] == [{"name": "FAULT", "value": "ignore-attributes"}]
    assert manifests.listening_address(derived) == ("127.0.0.1", 9999)
    same = manifests.derive(example, mode="shai", listen="127.0.0.1:8640", fault=manifests.NO_FAULT)
    assert same == example == manifests.read_pipeline(EXAMPLE)


def launcher(directory: Path, port: int | None) -> stack.Launcher:
    examples = directory / "crds" / "examples" / "syse"
    shutil.copytree(EXAMPLE.parent, examples)
    return stack.Launcher(Workspace(directory, directory / "out", "smoke"), (Path("java"), Path("/")), port)


def test_variants_have_their_own_manifests_and_the_example_is_used_as_it_is(tmp_path: Path) -> None:
    made = launcher(tmp_path, None)
    assert made.manifests(stack.CONFINED) == tmp_path / "crds" / "examples" / "syse"
    for variant in set(stack.VARIANTS) - {stack.CONFINED}:
        directory = made.manifests(variant)
        pipeline = manifests.read_pipeline(directory / "pipeline.yaml")
        assert pipeline["spec"]["mode"] == variant.mode
        assert manifests.listening_address(pipeline) == made.address(variant)
        assert (directory / "policies.yaml").read_text() == (EXAMPLE.parent / "policies.yaml").read_text()


def test_another_port_moves_the_example_too(tmp_path: Path) -> None:
    made = launcher(tmp_path, 9000)
    pipeline = manifests.read_pipeline(made.manifests(stack.CONFINED) / "pipeline.yaml")
    assert manifests.listening_address(pipeline) == ("127.0.0.1", 9000)
    assert sorted(made.address(variant)[1] for variant in stack.VARIANTS) == [9000, 9001, 9002, 9003]


@pytest.mark.parametrize("text", ["kind: Task", "a: [", "kind: Pipeline\n---\nkind: Pipeline"])
def test_something_else_than_one_pipeline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    with pytest.raises(manifests.ManifestError, match=r"pipeline\.yaml"):
        manifests.read_pipeline(path)


def test_region_addresses_agree_with_the_examples_facts(people: Population) -> None:
    facts = list(yaml.safe_load_all((EXAMPLE.parent / "facts.yaml").read_text()))
    prefixes = next(fact for fact in facts if fact["metadata"]["name"] == "regions")["spec"]["inline"][0]["tuples"]
    assert {region for _, region in prefixes} == set(people.regions)
    assert ["127.0.1.0/24", "de"] in prefixes
    assert ["127.0.2.0/24", "fr"] in prefixes


def test_interceptions_of_one_pipeline() -> None:
    assert monitor.interceptions(METRICS, "syse") == {"accept": 24, "send": 1_000_000}
    assert monitor.interceptions(METRICS, "syse-baseline") == {"send": 3}
    assert monitor.interceptions("", "syse") == {}


def test_a_monitor_that_is_gone_is_named(tmp_path: Path) -> None:
    gone = monitor.Monitor(Path("/bin/false"), tmp_path / "shai.sock")
    with pytest.raises(monitor.MonitorError, match=r"shai\.sock.*is the monitor running"):
        gone.interceptions("syse")
    with pytest.raises(monitor.MonitorError, match="shai status"):
        gone.task_pids("syse")
    assert not gone.is_ready()


def confined_store(directory: Path) -> stores.Store:
    """A store with a renamed AUTH and no rights for the default user, as shai configures it."""
    files = {name: str(directory / name) for name in ("configuration", "secrets", "socket")}
    (directory / "configuration").write_text(
        f'port 0\nunixsocket "{files["socket"]}"\ndir "{directory}"\nsave ""\n'
        "user default off\nuser monitor on >word ~* +@all\nrename-command AUTH enter\n"
    )
    return stores.confined_store(files, '{"AuthCommand":"enter","Administrator":"monitor","Password":"word"}')


@pytest.mark.parametrize("make", [stores.open_store, confined_store])
def test_profiles_reach_the_store(data: Path, tmp_path: Path, make: Callable[[Path], stores.Store]) -> None:
    store = make(tmp_path)
    with subprocess.Popen(store.command, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 10
        while not store.socket.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            assert stores.load_profiles(store, data / "profiles.jsonl") == 12
            if store.login is not None:
                with pytest.raises(stores.StoreError, match="profile:alice: expected OK, got b'-NOAUTH"):
                    stores.load_profiles(replace(store, login=None), data / "profiles.jsonl")
                return
            command = ["redis-cli", "-s", str(store.socket), "--raw", "GET", "profile:bob"]
            found = subprocess.check_output(command, text=True)
        finally:
            process.terminate()
    assert json.loads(found) == {"user": "bob", "friends": [], "interests": ["ünits"]}


def test_damaged_secrets_are_named(tmp_path: Path) -> None:
    with pytest.raises(stores.StoreError, match="secrets: not the secrets of a key-value store"):
        stores.confined_store({"secrets": str(tmp_path / "secrets")}, "{}")


def test_the_corpus_is_made_once_per_order(tmp_path: Path) -> None:
    place = Workspace(tmp_path, tmp_path / "out", "smoke")
    place.syse.mkdir(parents=True)
    (place.syse / "syse.jar").write_text("one")
    runs: list[Sequence[str]] = []
    words = corpus.command(place, PLANS["smoke"], 1, Path("java"))
    assert corpus.make(place, words, runs.append)
    assert not corpus.make(place, words, runs.append)
    assert corpus.make(place, corpus.command(place, PLANS["smoke"], 2, Path("java")), runs.append)
    (place.syse / "syse.jar").write_text("two")
    assert corpus.make(place, runs[-1], runs.append)


def test_an_interrupted_corpus_is_made_anew(tmp_path: Path) -> None:
    place = Workspace(tmp_path, tmp_path / "out", "smoke")
    place.syse.mkdir(parents=True)
    (place.syse / "syse.jar").write_text("one")

    def fail(_: Sequence[str]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus.make(place, ["java"], fail)
    assert corpus.make(place, ["java"], lambda _: None)


def test_bobs_diary_is_found_by_bob_only(server: FakeSysE, people: Population, data: Path) -> None:
    document = enforcement.private_document(data, "bob")
    assert document == enforcement.Document("/corpus/private/bob/7.txt", "bob's diary")
    found = enforcement.compare(server.address, people["alice"], people["bob"], document)
    assert [len(found[name]) for name in ("alice", "bob")] == [1, 2]


def test_a_leak_in_the_comparison_is_an_error(server: FakeSysE, people: Population, data: Path) -> None:
    server.leaky = True
    document = enforcement.private_document(data, "bob")
    with pytest.raises(enforcement.EnforcementError, match="alice was shown bob's private document"):
        enforcement.compare(server.address, people["alice"], people["bob"], document)


@pytest.mark.parametrize(
    ("baseline", "confined", "message"),
    [(True, False, ""), (True, True, "although it was confined"), (False, False, "proves nothing")],
)
def test_the_leak_attempt_has_to_leak_without_enforcement(
    baseline: bool, confined: bool, message: str  # noqa: FBT001
) -> None:  # fmt: skip
    document = enforcement.Document("/corpus/private/bob/7.txt", "bob's diary")
    if not message:
        enforcement.judge({"leaked": baseline}, {"leaked": confined}, document)
        return
    with pytest.raises(enforcement.EnforcementError, match=message):
        enforcement.judge({"leaked": baseline}, {"leaked": confined}, document)


def test_the_audit_record_is_waited_for_and_its_absence_is_an_error() -> None:
    document = enforcement.Document("/corpus/private/bob/7.txt", "bob's diary")
    allowed: dict[str, Any] = {"conduit": document.conduit, "allowed": True}
    denied: dict[str, Any] = {"conduit": document.conduit, "allowed": False, "reason": "not bob"}
    answers = iter([[], [allowed], [allowed, denied]])
    record = enforcement.await_record(lambda: next(answers), document)
    assert record["reason"] == "not bob"
    assert record["clause"] == ""
    with pytest.raises(enforcement.EnforcementError, match="no audit record says why"):
        enforcement.await_record(lambda: [allowed], document, seconds=0.0)


def test_a_corpus_without_a_private_document_is_an_error(data: Path) -> None:
    with pytest.raises(enforcement.EnforcementError, match="no private document with a title"):
        enforcement.private_document(data, "carol")


def test_locust_by_hand(server: FakeSysE, data: Path) -> None:
    locust = shutil.which("locust") or str(Path(__file__).resolve().parents[2] / ".venv" / "bin" / "locust")
    words = [locust, "-f", "loadgen/locustfile.py", "--host", f"http://127.0.0.1:{server.server_port}"]
    words += ["--data", str(data), "--session-length", "2", "--headless", "-u", "3", "-r", "3", "-t", "2"]
    done = subprocess.run(words, cwd=EXAMPLE.parents[3], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert len(server.logins) > 3
