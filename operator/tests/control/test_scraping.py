# SPDX-License-Identifier: BSD-2-Clause
"""What Prometheus is told to scrape, and the certificate that it gets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from cryptography import x509

from shai_operator.cluster.client import ClusterError
from shai_operator.control import scraping
from shai_operator.control.scraping import Scraping
from shai_operator.control.settings import Settings, SettingsError
from shai_operator.providers import authority
from shai_operator.providers.authority import Identity
from shai_operator.reconcile.objects import reference
from tests.reconcile.builders import OWNED, inventory, resource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from shai_operator.cluster.client import Cluster
    from shai_operator.reconcile.objects import Inventory, Object

ROOT = authority.create()


def row(ordinal: int, **more: str) -> dict[str, Any]:
    return {
        "name": f"red-{ordinal}",
        "ordinal": ordinal,
        "address": f"10.0.0.{ordinal}",
        "configuration": "c",
        **OWNED,
        **more,
    }


def pool(*rows: dict[str, Any], **spec: Any) -> Object:
    return resource("JailPool", "red", {"provider": "linux", **spec}, {"members": list(rows)})


class FakeCluster:
    """Stands for the API server: the pools that there are, and what is applied."""

    def __init__(self, *pools: Object) -> None:
        self.pools = pools
        self.applied: list[dict[str, Any]] = []
        self.away = False

    async def list(self, _: str) -> list[Object]:
        if self.away:
            raise ClusterError("the API server was not reached")
        return list(self.pools)

    async def apply(self, body: dict[str, Any], _: str) -> None:
        if self.away:
            raise ClusterError("the API server was not reached")
        self.applied.append(body)


def made(cluster: FakeCluster, known: Inventory, directory: Path | None = None, kept_in: str = "") -> Scraping:
    settings = Settings(
        namespace="shai-system", identity="test", shai=cast("Path", None), images=cast("Path", None),
        runtime=cast("Path", None), shared=cast("Path", None), probes=("::", 8080), webhooks=("", 0), webhook_host="",
        scrape=directory, scrape_secret=kept_in, cluster="europe",
    )  # fmt: skip
    return Scraping(settings, cast("Cluster", cluster), known, ROOT)


async def running(under_test: Scraping, until: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraping, "_LOOK_SECONDS", 0.01)
    task = asyncio.create_task(under_test.run())
    try:
        async with asyncio.timeout(60):
            while not until():
                await asyncio.sleep(0.01)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_the_operator_is_a_target_before_anything_is_known(tmp_path: Path) -> None:
    under_test = made(FakeCluster(), inventory(), tmp_path)
    await under_test.begin(8123)
    assert json.loads((tmp_path / "targets" / "operator.json").read_text()) == [
        {"targets": ["[::1]:8123"], "labels": {"cluster": "europe"}}
    ]
    assert {file.name for file in (tmp_path / "tls").iterdir()} == {"ca.pem", "client.pem", "client.key"}


async def test_members_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    red = pool(row(0), row(1, address="fd00::1"), row(2, address=""), row(3, configuration=""))
    known = inventory(red)
    under_test, file = made(FakeCluster(red), known, tmp_path), tmp_path / "targets" / "members.json"
    await under_test.begin(8080)
    await running(under_test, file.exists, monkeypatch)
    labels = {"cluster": "europe", "namespace": "search", "pool": "red"}
    assert json.loads(file.read_text()) == [
        {"targets": ["10.0.0.0:8443"], "labels": {**labels, "member": "red-0"}},
        {"targets": ["[fd00::1]:8443"], "labels": {**labels, "member": "red-1"}},
    ]
    known.put(pool(row(1), network={"monitorPort": 9000}))
    await running(under_test, lambda: "red-0" not in file.read_text(), monkeypatch)
    assert [group["targets"] for group in json.loads(file.read_text())] == [["10.0.0.1:9000"]]
    known.remove(reference(red))
    await running(under_test, lambda: json.loads(file.read_text()) == [], monkeypatch)


async def test_a_new_operator_does_not_forget_members_whose_pools_it_does_not_know_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = tmp_path / "targets"
    targets.mkdir()
    file = targets / "members.json"
    file.write_text("of the operator before")
    red, known, cluster = pool(row(0)), inventory(), FakeCluster(pool(row(0)))
    lists = 0

    async def listed(_: str) -> list[Object]:
        nonlocal lists
        lists += 1
        return [red]

    monkeypatch.setattr(cluster, "list", listed)
    under_test = made(cluster, known, tmp_path)
    await under_test.begin(8080)
    await running(under_test, lambda: lists > 3, monkeypatch)
    assert under_test.members() is None
    assert file.read_text() == "of the operator before"
    known.put(red)
    await running(under_test, lambda: file.read_text() != "of the operator before", monkeypatch)
    assert under_test.members() == json.loads(file.read_text())


async def test_the_certificate_names_its_role_and_is_in_the_secret() -> None:
    cluster = FakeCluster()
    under_test = made(cluster, inventory(), kept_in="shai-metrics-client")
    await under_test.begin(8080)
    (secret,) = cluster.applied
    assert secret["metadata"] == {"name": "shai-metrics-client", "namespace": "shai-system"}
    data = {name: base64.b64decode(text) for name, text in secret["data"].items()}
    assert data["ca.crt"].decode() == ROOT.certificate
    certificate = x509.load_pem_x509_certificate(data["tls.crt"])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["urn:shai:role:metrics"]
    assert b"PRIVATE KEY" in data["tls.key"]
    assert under_test.certificate_ends == certificate.not_valid_after_utc.timestamp()


async def test_it_is_renewed_before_it_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    under_test = made(cluster, inventory(), tmp_path, kept_in="s")
    await under_test.begin(8080)
    first, file = under_test.certificate_ends, tmp_path / "tls" / "client.pem"
    before = file.read_text()

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]  # the tests pass UTC
            return datetime.now(tz) + timedelta(days=61)

    await running(under_test, (tmp_path / "targets" / "members.json").exists, monkeypatch)
    assert file.read_text() == before, "not before it is due"
    monkeypatch.setattr(scraping, "datetime", Later)
    await running(under_test, lambda: under_test.certificate_ends > first, monkeypatch)
    assert file.read_text() != before
    assert len(cluster.applied) == 2
    assert datetime.fromtimestamp(under_test.certificate_ends, UTC) > datetime.now(UTC) + timedelta(days=140)


async def test_nothing_is_issued_unless_it_is_asked_for() -> None:
    cluster = FakeCluster()
    under_test = made(cluster, inventory())
    await under_test.begin(8080)
    assert not cluster.applied
    assert under_test.certificate_ends != under_test.certificate_ends, "NaN"


async def test_what_fails_is_logged_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "scrape"
    directory.mkdir()
    under_test = made(FakeCluster(), inventory(), directory)
    await under_test.begin(8080)
    directory.rename(tmp_path / "away")
    with caplog.at_level(logging.INFO):
        await running(under_test, lambda: "No such file" in caplog.text, monkeypatch)
        (tmp_path / "away").rename(directory)
        await running(under_test, lambda: "again" in caplog.text, monkeypatch)
    assert (directory / "targets" / "members.json").exists()
    assert caplog.text.count("does not get what it needs") == 1
    assert caplog.text.count("again") == 1


async def test_a_directory_that_fails_does_not_keep_the_secret_from_being_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a certificate that was issued is kept until it is published everywhere."""
    issue, issued, looks = authority.issue_client, list[Identity](), 0

    def counted(*arguments: Any, **more: Any) -> Identity:
        issued.append(issue(*arguments, **more))
        return issued[-1]

    async def listed(_: str) -> list[Object]:
        nonlocal looks
        looks += 1
        return [pool(row(0))]  # is never known, so that each round asks

    cluster, directory = FakeCluster(), tmp_path / "scrape"
    monkeypatch.setattr(authority, "issue_client", counted)
    monkeypatch.setattr(cluster, "list", listed)
    under_test = made(cluster, inventory(), directory, kept_in="s")
    await running(under_test, lambda: looks > 3, monkeypatch)
    assert len(cluster.applied) == len(issued) == 1
    directory.mkdir()
    file = directory / "tls" / "client.pem"
    await running(under_test, file.exists, monkeypatch)
    assert [one.certificate for one in issued] == [file.read_text()]
    assert len(cluster.applied) == 1


async def test_the_end_of_a_certificate_is_of_the_one_that_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise nobody would learn that Prometheus never gets the new one."""
    looks = 0

    async def listed(_: str) -> list[Object]:
        nonlocal looks
        looks += 1
        return [pool(row(0))]

    cluster, directory = FakeCluster(), tmp_path / "scrape"
    directory.mkdir()
    monkeypatch.setattr(cluster, "list", listed)
    under_test = made(cluster, inventory(), directory, kept_in="s")
    await under_test.begin(8080)
    first = under_test.certificate_ends
    directory.rename(tmp_path / "away")
    monkeypatch.setattr(scraping, "RENEW_BEFORE", timedelta(days=10000))
    await running(under_test, lambda: looks > 3, monkeypatch)
    assert under_test.certificate_ends == first


async def test_an_api_server_that_is_away_is_no_reason_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster()
    cluster.away = True
    under_test = made(cluster, inventory(), kept_in="s")
    with pytest.raises(ClusterError):
        await under_test.begin(8080)
    seen = False

    def back() -> bool:
        nonlocal seen
        cluster.away, seen = not seen, True
        return bool(cluster.applied)

    await running(under_test, back, monkeypatch)
    assert under_test.members() == []


async def test_a_directory_that_is_missing_at_the_start_is_an_error(tmp_path: Path) -> None:
    under_test = made(FakeCluster(), inventory(), tmp_path / "missing")
    with pytest.raises(SettingsError, match="missing"):
        await under_test.begin(8080)
