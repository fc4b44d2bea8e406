# SPDX-License-Identifier: BSD-2-Clause
"""What the operator makes of the webhooks' configuration that it finds."""

from __future__ import annotations

import base64
import copy
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.control.webhooks import VALIDATED, Address, configuration, restored

if TYPE_CHECKING:
    from collections.abc import Callable

AUTHORITY = "the authority"
BUNDLE = base64.b64encode(AUTHORITY.encode()).decode()
HERE = Address("127.0.0.1", 9443, AUTHORITY)
BEHIND_A_SERVICE = Address("shai-operator.shai-system.svc", 9443, AUTHORITY)


def _untrusted(webhook: dict[str, Any]) -> None:
    webhook["clientConfig"]["caBundle"] = "b3RoZXI="


def _ignored(webhook: dict[str, Any]) -> None:
    webhook["failurePolicy"] = "Ignore"


def _elsewhere(webhook: dict[str, Any]) -> None:
    webhook["clientConfig"] = {"url": "https://192.0.2.1/x", "caBundle": BUNDLE}


def _patient(webhook: dict[str, Any]) -> None:
    webhook["timeoutSeconds"] = 20


def changed(address: Address, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    found = copy.deepcopy(configuration(address))
    for webhook in found["webhooks"]:
        change(webhook)
    return found


@pytest.mark.parametrize("change", [_untrusted, _ignored, _elsewhere, _patient])
def test_without_a_service_all_of_it_is_the_operator_s(change: Callable[[dict[str, Any]], None]) -> None:
    assert restored(changed(HERE, change), HERE) == configuration(HERE)["webhooks"]


def test_behind_a_service_the_authority_is_the_operator_s() -> None:
    assert (
        restored(changed(BEHIND_A_SERVICE, _untrusted), BEHIND_A_SERVICE) == configuration(BEHIND_A_SERVICE)["webhooks"]
    )


@pytest.mark.parametrize("change", [_ignored, _patient])
def test_behind_a_service_the_rest_is_whose_who_installed_it(change: Callable[[dict[str, Any]], None]) -> None:
    found = changed(BEHIND_A_SERVICE, change)
    assert restored(found, BEHIND_A_SERVICE) == found["webhooks"]


@pytest.mark.parametrize("address", [HERE, BEHIND_A_SERVICE])
@pytest.mark.parametrize("emptied", [{}, {"webhooks": None}, {"webhooks": []}])
def test_an_emptied_configuration_is_filled_again(address: Address, emptied: dict[str, Any]) -> None:
    assert restored(emptied, address) == configuration(address)["webhooks"]


def test_the_api_server_gets_an_address_that_it_can_use() -> None:
    assert Address("::1", 9443, AUTHORITY).client("tasks") == {"url": "https://[::1]:9443/tasks", "caBundle": BUNDLE}
    service = {"namespace": "shai-system", "name": "shai-operator", "port": 443, "path": "/tasks"}
    assert BEHIND_A_SERVICE.client("tasks") == {"service": service, "caBundle": BUNDLE}
    assert {webhook["name"] for webhook in configuration(HERE)["webhooks"]} == {f"{one}.shai.dev" for one in VALIDATED}
