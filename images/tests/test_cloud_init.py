# SPDX-License-Identifier: BSD-2-Clause
"""What is rendered is in the words of the programs that read it: cloud-init's own schema, nuageinit's manual page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft4Validator  # type: ignore[import-untyped]  # comes without types

from images.rendering import render

SCHEMA = Path(__file__).parents[2] / "build" / "tools" / "cloud-init" / "user-data.json"
NUAGEINIT = {
    "": {
        "chpasswd",
        "fqdn",
        "groups",
        "hostname",
        "network",
        "package_update",
        "package_upgrade",
        "packages",
        "runcmd",
        "ssh_authorized_keys",
        "ssh_keys",
        "ssh_pwauth",
        "timezone",
        "users",
        "write_files",
    },
    "users": {
        "doas",
        "gecos",
        "groups",
        "homedir",
        "locked",
        "name",
        "no_create_home",
        "passwd",
        "plain_text_passwd",
        "primary_group",
        "shell",
        "ssh_authorized_keys",
        "sudo",
    },
    "ethernets": {"addresses", "dhcp4", "gateway4", "gateway6", "match", "mtu", "nameservers", "set-name", "wakeonlan"},
}
"""The keys that nuageinit(7) of FreeBSD 15 documents. It ignores others without a word."""


@pytest.fixture(scope="module")
def validator() -> Draft4Validator:
    """Return cloud-init's schema of user-data; `make images` and `make test` take it out of Debian's package."""
    return Draft4Validator(json.loads(SCHEMA.read_text()))


def user_data(first_boot: dict[str, Any], variant: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(render({**first_boot, "variant": variant})["user-data"])
    return read


def test_cloud_init_accepts_what_linux_gets(first_boot: dict[str, Any], validator: Draft4Validator) -> None:
    assert [error.message for error in validator.iter_errors(user_data(first_boot, "cloud-init"))] == []


@pytest.mark.parametrize("change", [{"users": [{"name": 1}]}, {"growpart": {"mode": "x"}}, {"ssh_keys": []}])
def test_cloud_init_refuses_what_is_wrong(
    first_boot: dict[str, Any], validator: Draft4Validator, change: dict[str, Any]
) -> None:
    assert list(validator.iter_errors({**user_data(first_boot, "cloud-init"), **change}))


def test_nuageinit_knows_every_key_that_freebsd_gets(first_boot: dict[str, Any]) -> None:
    made = user_data(first_boot, "nuageinit")
    assert set(made) <= NUAGEINIT[""]
    assert {key for user in made["users"] for key in user} <= NUAGEINIT["users"]
    assert {key for card in made["network"]["ethernets"].values() for key in card} <= NUAGEINIT["ethernets"]
