# SPDX-License-Identifier: BSD-2-Clause
"""The files of a seed have the values that they were made from, whatever these contain."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import UndefinedError

from images.rendering import FILES, TEMPLATES, VARIABLE, render
from images.tests.test_machine import HOSTILE

VARIANTS = ("nuageinit", "cloud-init")
# JSON writes characters beyond the first plane as pairs that no YAML reader joins; images.machine refuses them before.
QUOTABLE = [text for text in HOSTILE if text.isprintable() <= (max(text, default="a") <= "\uffff")]
HOSTILE_TO_ANSIBLE = "a \"b\" 'c'\n{{ 7 }} {% raw %}"
SECRET_OR_PASSWORD = ("passwd", "plain_text_passwd", "hashed_passwd", "chpasswd", "password")


def parsed(first_boot: dict[str, Any]) -> dict[str, Any]:
    """Read what is rendered with both readers: cloud-init uses Python's, and nuageinit the C library."""
    files = render(first_boot)
    read = {name: yaml.safe_load(text) for name, text in files.items()}
    assert {name: yaml.load(text, Loader=yaml.CSafeLoader) for name, text in files.items()} == read
    return read


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("text", QUOTABLE)
def test_every_value_is_read_back_as_it_was(first_boot: dict[str, Any], variant: str, text: str) -> None:
    """The role renders the templates without images.machine, so they have to quote by themselves."""
    made = parsed(
        {
            "variant": variant,
            "instance_id": text,
            "hostname": text,
            "authorized_keys": [text, text],
            "host_key": {"private": text, "public": text},
            "network": {"mac": text, "address": text, "gateway": text, "nameservers": [text]},
        }
    )
    assert made["meta-data"] == {"instance-id": text, "local-hostname": text}
    user = made["user-data"]
    assert user["hostname"] == text
    assert user["users"][0]["ssh_authorized_keys"] == [text, text]
    assert user["ssh_keys"] == {"ed25519_private": text, "ed25519_public": text}
    (interface,) = made["network-config"]["ethernets"].values()
    assert interface["addresses"] == [text]
    assert interface["nameservers"] == {"addresses": [text]}
    family = "6" if ":" in text else "4"
    assert interface.get(f"gateway{family}", "") == text
    # Values add no key anywhere: the same ones are there with plain values.
    plain = parsed({**first_boot, "variant": variant})
    assert [set(made[name]) for name in FILES] == [set(plain[name]) for name in FILES]


@pytest.mark.parametrize("variant", VARIANTS)
def test_nobody_has_a_password(first_boot: dict[str, Any], variant: str) -> None:
    text = render({**first_boot, "variant": variant})["user-data"]
    user = yaml.safe_load(text)
    assert text.startswith("#cloud-config\n"), "nuageinit(7) and cloud-init know the file by its first line"
    assert user["ssh_pwauth"] is False
    assert [entry["name"] for entry in user["users"]] == ["root"], (
        "an entry default would make a user with a known password"
    )
    assert not set(SECRET_OR_PASSWORD) & ({*user} | {*user["users"][0]})


def test_freebsd_takes_the_password_login_away(first_boot: dict[str, Any]) -> None:
    commands = parsed(first_boot)["user-data"]["runcmd"]
    assert "pw usermod root -h -" in commands
    assert all(isinstance(command, str) for command in commands), "nuageinit writes each into a script as it is"
    assert not set(VARIANTS) & set(parsed({**first_boot, "variant": "cloud-init"})["user-data"])


def test_freebsds_commands_make_sshd_refuse_passwords(first_boot: dict[str, Any], tmp_path: Path) -> None:
    """The commands work on the sshd_config of the image BASIC-CLOUDINIT, which permits passwords at its end."""
    config = tmp_path / "sshd_config"
    key = tmp_path / "host_key"
    key.write_text(first_boot["host_key"]["private"])
    key.chmod(0o600)
    config.write_text("#PermitRootLogin no\nPermitRootLogin yes\nPasswordAuthentication yes\nUsePAM no\n")
    for command in parsed(first_boot)["user-data"]["runcmd"]:
        if "/etc/ssh/sshd_config" in command:
            here = command.replace("/etc/ssh/sshd_config", str(config)).replace('sed -i ""', "sed -i")
            here = here.replace("/etc/ssh/ssh_host_ed25519_key", str(key))
            subprocess.run(["/bin/sh", "-c", here], check=True)
    shown = subprocess.run(
        ["/usr/sbin/sshd", "-T", "-f", str(config)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {
        "passwordauthentication no",
        "kbdinteractiveauthentication no",
        "permitemptypasswords no",
        "permitrootlogin without-password",
        f"hostkey {key}",
    } <= set(shown)


def test_both_places_of_the_network_say_the_same(first_boot: dict[str, Any]) -> None:
    made = parsed(first_boot)
    assert made["network-config"] == {"version": 2, **made["user-data"]["network"]}
    assert list(made["network-config"]["ethernets"]) == ["vtnet0"]


def test_linux_finds_its_interface_by_its_address(first_boot: dict[str, Any]) -> None:
    made = parsed({**first_boot, "variant": "cloud-init"})
    (name,) = made["network-config"]["ethernets"]
    card = made["network-config"]["ethernets"][name]
    assert card["match"] == {"macaddress": first_boot["network"]["mac"]}
    assert card["set-name"] == name
    assert "network" not in made["user-data"]


def test_a_machine_without_a_way_out_has_no_gateway(first_boot: dict[str, Any]) -> None:
    first_boot["network"] |= {"gateway": "", "nameservers": []}
    interface = parsed(first_boot)["network-config"]["ethernets"]["vtnet0"]
    assert interface == {"addresses": ["198.51.100.130/25"]}


@pytest.mark.parametrize("field", ["hostname", "instance_id", "authorized_keys", "host_key", "network", "variant"])
def test_a_missing_value_is_an_error(first_boot: dict[str, Any], field: str) -> None:
    del first_boot[field]
    with pytest.raises((UndefinedError, TypeError)):
        render(first_boot)


def test_ansible_renders_the_same(first_boot: dict[str, Any], tmp_path: Path) -> None:
    machines = {variant: {**first_boot, "variant": variant, "hostname": HOSTILE_TO_ANSIBLE} for variant in VARIANTS}
    template = {"src": "{{ templates }}/{{ item }}.j2", "dest": "{{ into }}/{{ inventory_hostname }}-{{ item }}"}
    task = {"ansible.builtin.template": {**template, "mode": "0600"}, "loop": list(FILES)}
    book = tmp_path / "play.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    inventory = tmp_path / "inventory.yml"
    # As the operator's inventories: texts are data, and not templates.
    shared = {"ansible_connection": "local", "templates": str(TEMPLATES), "into": str(tmp_path)}
    hosts = {name: {VARIABLE: values, **shared} for name, values in machines.items()}
    inventory.write_text(_unsafe({"all": {"hosts": hosts}}))
    subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", inventory, book],
        check=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
    )
    for name, values in machines.items():
        assert {file: (tmp_path / f"{name}-{file}").read_text() for file in FILES} == render(values)


class _Unsafe(str):
    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def _unsafe(value: Any) -> str:
    def marked(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: marked(inner) for key, inner in part.items()}
        if isinstance(part, list):
            return [marked(inner) for inner in part]
        return _Unsafe(part)

    return yaml.dump(marked(value), Dumper=_Dumper)
