# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import base64
import copy
import gzip
import json
import random
import string
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shai_operator.reconcile import bundles
from shai_operator.reconcile.bundles import Bundle, Facts, ReleaseError
from tests.reconcile.builders import resource

POOL = resource("JailPool", "default")
ONE = bundles.manifest(resource("Policy", "public", {"text": "policy public { read :- true. }", "mode": "Enforce"}))
TWO = bundles.manifest(resource("Task", "search", {"command": ["/bin/search"]}))
HEX = "0123456789abcde" * 2
REVISIONS = {"public": "public-0123456789"}


def release(*manifests: Any, **more: Any) -> bundles.Release:
    known = {"pool": "default", "namespace": "search", "revisions": REVISIONS, **more}
    return bundles.release(known["pool"], known["namespace"], manifests or (ONE, TWO), known["revisions"])


def test_a_manifest_has_nothing_of_the_cluster_and_of_the_operator() -> None:
    written = bundles.manifest(
        resource("Pipeline", "syse", {"tasks": ["a"], "pool": "p", "rollout": {"paused": True}}, {"pool": "p"})
    )
    assert written == {
        "apiVersion": "shai.dev/v1alpha1",
        "kind": "Pipeline",
        "metadata": {"name": "syse"},
        "spec": {"tasks": ["a"]},
    }
    policy = resource("Policy", "p", {"text": "t", "mode": "Warn", "rollout": {}, "revisionHistoryLimit": 3})
    assert bundles.manifest(policy)["spec"] == {"text": "t", "mode": "Warn"}


def test_the_name_follows_from_the_content_and_nothing_else() -> None:
    assert release(ONE, TWO) == release(TWO, ONE)
    assert release(ONE, TWO).name == release(TWO, ONE).name
    names = [release(), release(ONE), release(pool="other"), release(namespace="other")]
    assert len({name.name for name in names}) == 4
    assert release().name.removeprefix("shai-release-") == release().hash[:30]


def test_a_stored_release_is_read_back_and_always_the_same_bytes() -> None:
    stored = bundles.store(release(), POOL, "shai-system")
    assert stored == bundles.store(release(TWO, ONE), POOL, "shai-system")
    assert base64.b64decode(stored["binaryData"]["release.json.gz"])[4:8] == bytes(4), "no time is in it"
    assert bundles.load(stored) == release()
    assert stored["metadata"]["ownerReferences"][0]["uid"] == "uid-default"
    assert (stored["immutable"], stored["metadata"]["labels"]) == (True, {"shai.dev/pool": "default"})


def test_a_release_from_before_is_read_under_its_shorter_name() -> None:
    stored = bundles.store(release(), POOL, "shai-system")
    stored["metadata"]["name"] = f"shai-release-{release().hash[:12]}"
    assert bundles.load(stored) == release()


def test_names_and_labels_have_too_many_digits_to_collide_on_purpose() -> None:
    release_digits, _, facts_digits = Bundle(release(), bundles.facts([])).label.partition(".")
    assert min(len(release_digits), len(facts_digits)) * 4 >= 120
    assert len(f"{release_digits}.{facts_digits}") <= 64, "the bound of status.members[].bundle"


def altered(change: str) -> dict[str, Any]:
    stored = copy.deepcopy(bundles.store(release(), POOL, "shai-system"))
    packed = base64.b64decode(stored["binaryData"]["release.json.gz"])
    match change:
        case "content":
            packed = gzip.compress(gzip.decompress(packed).replace(b"read :- true", b"read :- sKey"))
        case "cut":
            packed = packed[:-9]
        case "not gzip":
            packed = b"hello"
        case "not a release":
            packed = gzip.compress(json.dumps([1, 2]).encode())
        case "name":
            stored["metadata"]["name"] = "shai-release-000000000000"
    stored["binaryData"] = {"release.json.gz": base64.b64encode(packed).decode()}
    if change == "no data":
        del stored["binaryData"]
    return stored


@pytest.mark.parametrize("change", ["content", "cut", "not gzip", "not a release", "name", "no data"])
def test_a_release_that_is_not_what_its_name_says_is_refused(change: str) -> None:
    with pytest.raises(ReleaseError, match="delete it"):
        bundles.load(altered(change))


def test_a_release_that_does_not_fit_says_what_to_do() -> None:
    rng = random.Random(7)
    noise = "".join(rng.choices(string.printable, k=1_300_000))
    with pytest.raises(ReleaseError, match="FactSources with a file"):
        bundles.store(release({**ONE, "spec": {"text": noise}}), POOL, "shai-system")


@given(st.text())
def test_whatever_a_text_holds_a_yaml_reader_reads_the_same(text: str) -> None:
    written = {**ONE, "spec": {"text": text}}
    (source,) = Bundle(release(written), Facts(())).sources()
    assert source["name"] == "Policy/public"
    assert json.loads(source["text"]) == written
    if text.isprintable() or all(letter not in text for letter in "\x7f\x85"):
        assert yaml.safe_load(source["text"]) == written


@pytest.mark.parametrize("letter", ["\ufffe", "\uffff", "\ufeff", "\u2028", "\x85", "\U0001f600", "\U0001fffe"])
def test_a_text_with_a_letter_that_yaml_treats_specially_is_read_the_same(letter: str) -> None:
    assert yaml.safe_load(bundles.dump({"text": letter})) == {"text": letter}


def test_a_label_names_release_and_facts() -> None:
    facts = bundles.facts([resource("Principal", "alice", {"publicKey": "00"})])
    bundle = Bundle(release(), facts)
    assert bundles.label_parts(bundle.label) == (release().name, facts.hash[:30])
    other = Bundle(release(), bundles.facts([]))
    assert bundles.label_parts(other.label)[0] == release().name
    assert other.label != bundle.label


@pytest.mark.parametrize("label", ["", "by hand", HEX, f"{HEX}.", f"{HEX.upper()}.{HEX}"])
def test_a_foreign_label_is_nobody_s(label: str) -> None:
    assert bundles.label_parts(label) == ("", "")


def test_changed_policies_are_those_at_another_revision() -> None:
    before = release(revisions={"a": "a-1", "b": "b-1", "c": "c-1"})
    after = release(revisions={"a": "a-2", "b": "b-1", "d": "d-1"})
    assert bundles.changed_policies(before, after) == ("a", "d")


@pytest.mark.parametrize(
    ("after", "withdraws"),
    [((ONE,), True), ((ONE, TWO), True), (({**ONE, "spec": {}},), False), ((ONE, {**TWO, "kind": "Pipeline"}), False)],
)
def test_withdrawing_leaves_out_and_changes_nothing(after: tuple[Any, ...], *, withdraws: bool) -> None:
    assert bundles.withdraws(release(), release(*after)) is withdraws
