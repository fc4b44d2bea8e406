# SPDX-License-Identifier: BSD-2-Clause
"""The harness's smaller parts: derived manifests, profiles, metrics, corpus, enforcement."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from loadgen import dataset, enforcement, manifests, monitor, stores
from loadgen.plan import DATASETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.population import Population
    from loadgen.tests.fake_syse import FakeSysE

EXAMPLE = Path(__file__).resolve().parents[2] / "crds" / "examples" / "syse"

METRICS = """# HELP shai_sessions_total Sessions that have ended.
# TYPE shai_sessions_total counter
shai_sessions_total{mode="shai",pipeline="syse"} 7
# HELP shai_interceptions_total Times a task involved the reference monitor, by kind.
# TYPE shai_interceptions_total counter
shai_interceptions_total{kind="accept",pipeline="syse"} 24
shai_interceptions_total{kind="send",pipeline="syse"} 1e+06
shai_interceptions_total{kind="send",pipeline="syse-baseline"} 3
"""


def derived(**changes: str) -> list[dict[str, Any]]:
    example = manifests.read(EXAMPLE)
    pipeline = manifests.find(example, "syse")
    listen = manifests.listening_address(pipeline)
    usual = {"mode": pipeline["spec"]["mode"], "listen": listen, "fault": manifests.NO_FAULT}
    return manifests.derive(example, "syse", **{**usual, **changes})


def by_name(documents: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(entry["kind"], entry["metadata"]["name"]): entry for entry in documents}


def test_a_variant_differs_in_what_was_asked_and_in_nothing_else() -> None:
    example = manifests.read(EXAMPLE)
    assert by_name(derived()) == by_name(example)
    variant = derived(mode="baseline", listen="127.0.0.1:9999", fault="ignore-attributes")
    pipeline = manifests.find(variant, "syse")
    assert pipeline["spec"]["mode"] == "baseline"
    assert {"name": "FAULT", "value": "ignore-attributes"} in pipeline["spec"]["variables"]
    assert manifests.listening_address(pipeline) == "127.0.0.1:9999"
    assert by_name(manifests.read(EXAMPLE)) == by_name(example), "the original is not touched"


def test_other_pipelines_stay_behind() -> None:
    other = {"kind": "Pipeline", "metadata": {"name": "other"}, "spec": {}}
    documents = manifests.derive(
        [other, *manifests.read(EXAMPLE)], "syse", mode="shai", listen="127.0.0.1:1", fault=manifests.NO_FAULT
    )
    assert [entry["metadata"]["name"] for entry in documents if entry["kind"] == "Pipeline"] == ["syse"]


def test_manifests_survive_their_file(tmp_path: Path) -> None:
    path = manifests.write(tmp_path / "new", derived())
    assert by_name(manifests.read(path.parent)) == by_name(derived())


def test_what_is_not_the_monitors_is_left_out() -> None:
    assert {entry["kind"] for entry in manifests.read(EXAMPLE)} == {"Policy", "FactSource", "Task", "Pipeline"}


@pytest.mark.parametrize(
    ("text", "message"), [("a: [", "bundle.yaml"), ("kind: Kustomization", "no manifests"), ("", "no manifests")]
)
def test_something_else_than_manifests_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bundle.yaml").write_text(text)
    with pytest.raises(manifests.ManifestError, match=message):
        manifests.read(tmp_path)


def test_a_pipeline_that_is_not_there_or_cannot_be_broken_is_named() -> None:
    example = manifests.read(EXAMPLE)
    with pytest.raises(manifests.ManifestError, match="no manifest of pipeline other; there are syse"):
        manifests.find(example, "other")
    pipeline = manifests.find(example, "syse")
    pipeline["spec"]["variables"] = []
    with pytest.raises(manifests.ManifestError, match="no variable FAULT"):
        manifests.derive(example, "syse", mode="shai", listen="", fault="ignore-attributes")


def test_region_addresses_agree_with_the_examples_facts(people: Population) -> None:
    facts = list(yaml.safe_load_all((EXAMPLE / "facts.yaml").read_text()))
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
    with pytest.raises(monitor.MonitorError, match=r"shai\.sock.*is it running"):
        gone.interceptions("syse")
    with pytest.raises(monitor.MonitorError, match=r"shai\.sock"):
        gone.task_pids("syse")
    assert not gone.is_ready()


BOB = {"user": "bob", "friends": [], "interests": ["ünits"]}


def confined_store(directory: Path) -> stores.Store:
    """A store with a renamed AUTH and no rights for the default user, as shai configures it."""
    files = {name: str(directory / name) for name in ("configuration", "secrets", "socket")}
    (directory / "configuration").write_text(
        f'port 0\nunixsocket "{files["socket"]}"\ndir "{directory}"\nsave ""\n'
        "user default off\nuser monitor on >word ~* +@all\nrename-command AUTH enter\n"
    )
    return stores.confined_store(files, '{"AuthCommand":"enter","Administrator":"monitor","Password":"word"}')


@pytest.mark.parametrize("make", [stores.open_store, confined_store])
@pytest.mark.parametrize("lines", [False, True])
def test_commands_reach_the_store(
    data: Path,
    tmp_path: Path,
    make: Callable[[Path], stores.Store],
    lines: bool,  # noqa: FBT001
) -> None:
    store = make(tmp_path)
    dataset.write_seed_commands(data)
    commands = tmp_path / "commands"
    (data / dataset.SEED_COMMANDS).replace(commands)
    if lines:
        commands.write_text(f"SET profile:bob {json.dumps(json.dumps(BOB))}")
    with subprocess.Popen(store.command, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 10
        while not store.socket.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            stores.load(store, commands)
            if store.login is not None:
                with pytest.raises(stores.StoreError, match=r"refuses a command of .*commands: NOAUTH"):
                    stores.load(replace(store, login=None), commands)
                return
            command = ["redis-cli", "-s", str(store.socket), "--raw", "GET", "profile:bob"]
            found = subprocess.check_output(command, text=True)
        finally:
            process.terminate()
    assert json.loads(found) == BOB


def test_damaged_secrets_are_named(tmp_path: Path) -> None:
    with pytest.raises(stores.StoreError, match="secrets: not the secrets of a key-value store"):
        stores.confined_store({"secrets": str(tmp_path / "secrets")}, "{}")


@pytest.fixture
def generator(tmp_path: Path) -> dataset.Generator:
    (tmp_path / "syse.jar").write_text("one")
    return dataset.Generator(tmp_path / "syse.jar", Path("java"))


def test_a_dataset_is_made_once_per_order(tmp_path: Path, generator: dataset.Generator) -> None:
    place, runs = tmp_path / "data", list[Sequence[str]]()

    def run(words: Sequence[str]) -> None:
        runs.append(words)
        (place / "profiles.jsonl").write_text('{"user": "bob"}\n')

    smoke = DATASETS["smoke"]
    assert dataset.make(place, smoke, 1, generator, run)
    assert (place / "profiles.resp").read_bytes().startswith(b"*3\r\n$3\r\nSET\r\n$11\r\nprofile:bob\r\n")
    assert dataset.describe(place)["documents"] == 2000
    assert not dataset.make(place, smoke, 1, generator, run)
    assert dataset.make(place, smoke, 2, generator, run)
    generator.jar.write_text("two")
    assert dataset.make(place, smoke, 2, generator, run)
    assert runs[0] != runs[1] == runs[2]


def test_an_interrupted_dataset_is_made_anew(tmp_path: Path, generator: dataset.Generator) -> None:
    place = tmp_path / "data"

    def fail(_: Sequence[str]) -> None:
        (place / "profiles.jsonl").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dataset.make(place, DATASETS["smoke"], 1, generator, fail)
    assert dataset.describe(place) == {}
    assert dataset.make(place, DATASETS["smoke"], 1, generator, lambda _: (place / "profiles.jsonl").touch())


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
    words += ["--data", str(data), "--session-length", "2", "--headless", "-u", "3", "-r", "3"]
    process = subprocess.Popen(
        words, cwd=EXAMPLE.parents[2], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 60
    while len(server.logins) <= 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert len(server.logins) > 3
