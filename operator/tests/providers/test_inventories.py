# SPDX-License-Identifier: BSD-2-Clause
"""What Ansible itself reads from inventories: each text of a pool arrives as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shai_operator.providers.interface import Image, Member, MemberConfiguration
from shai_operator.providers.inventory import MACHINE, MEMBERS, Connection, LinuxInventories, render

RUNS_HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
TEXTS = (
    *("no", "yes", "on", "off", "true", "y", "null", "~", "", " ", "\t", "\n", "one\ntwo\n", " before", "after "),
    *("1", "010", "0x1f", "0o17", "1.10", "1e3", "1_000", ".inf", ".nan", "12:30", "2026-11-24", "+5", "-"),
    *(
        "=",
        "<<",
        "!x",
        "!unsafe x",
        "&a",
        "*a",
        "- x",
        "? x",
        "x: y",
        "#",
        "%",
        "@",
        "`",
        "|",
        ">",
        "[",
        "{",
        "{}",
        "[]",
    ),
    *("{{ 7 * 7 }}", "{% raw %}", "{# x #}", "{{ lookup('pipe', 'id') }}", "$HOME", "\\", "'", '"', "__ansible_unsafe"),
    *("None", "omit", "a\u0085b", "a\u2028b", "\ufeffx", "ünïcode", "😀", "\x7f"),
)


def read_by_ansible(place: Path, inventory: str, expression: str, hosts: str = MACHINE) -> dict[str, Any]:
    """Return the value of an expression for each of these entries of an inventory."""
    content = "{{ " + expression + " | to_json }}"
    task = {
        "ansible.builtin.copy": {"content": content, "dest": f"{place}/{{{{ inventory_hostname }}}}", "mode": "0600"}
    }
    (place / "play.yml").write_text(json.dumps([{"hosts": hosts, "gather_facts": False, "tasks": [task]}]))
    (place / "inventory.json").write_text(inventory)
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--inventory", place / "inventory.json", place / "play.yml"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    written = (path for path in place.iterdir() if path.suffix == "")
    return {path.name: json.loads(path.read_text()) for path in written}


def test_texts_arrive_as_they_are(tmp_path: Path) -> None:
    given = {"list": list(TEXTS), "tuple": TEXTS, "each": {f"n{number}": text for number, text in enumerate(TEXTS)}}
    inventory = render({**RUNS_HERE, "given": given}, {MACHINE: {MACHINE: {}}})
    assert read_by_ansible(tmp_path, inventory, "given") == {MACHINE: {**given, "tuple": list(TEXTS)}}


def test_what_is_no_text_arrives_as_it_is(tmp_path: Path) -> None:
    given: dict[str, Any] = {"yes": True, "no": False, "number": 7, "nothing": None, "none": [], "empty": {}}
    inventory = render({**RUNS_HERE, "given": given}, {MACHINE: {MACHINE: {}}})
    assert read_by_ansible(tmp_path, inventory, "given") == {MACHINE: given}


@pytest.mark.parametrize("pool", ["on", "yes", "null", "010"])
def test_pools_keep_their_names_variables_runtimes_and_sources(pool: str, tmp_path: Path) -> None:
    variables = tuple((f"NAME_{number}", text) for number, text in enumerate(TEXTS) if text.isprintable())
    runtimes = tuple((text, tuple(f"/{other}" for other in TEXTS)) for text in ("no", "1e3", "0x1f", "null"))
    sources = (
        "unix:/010",
        "unix:/yes",
        "unix:/{{ 7 * 7 }}",
        "unix:/{% raw %}",
        'unix:/it\'s "a" \\ `id`',
        "http://a.b:80",
    )
    image = Image("i", "/images/i", "a" * 64)
    configuration = MemberConfiguration("/srv/no", image, "1", variables=variables, runtimes=runtimes, sources=sources)
    writer = LinuxInventories(Connection(lambda _: RUNS_HERE, sys.executable))
    inventory = writer.provision([Member(pool, f"{pool}-0", 0, "rack", "192.0.2.1")], configuration, tmp_path)
    expression = (
        "[linux_member_pool, linux_member_name, linux_member_variables, linux_member_runtimes, linux_member_sources, "
        "linux_host_directory]"
    )
    wanted = [
        pool,
        f"{pool}-0",
        [{"name": name, "value": value} for name, value in variables],
        [{"name": name, "paths": list(paths)} for name, paths in runtimes],
        list(sources),
        "/srv/no",
    ]
    assert read_by_ansible(tmp_path, inventory, expression, MEMBERS) == {f"{pool}-0": wanted}
