# SPDX-License-Identifier: BSD-2-Clause
"""What the playbook of a FreeBSD host does not go on with, with real ansible-playbook processes on tiny roles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shai_operator.providers.process import COLLECTION

_ROLES = {
    "bhyve_host": ("main", "tidy"),
    "pool_vm": ("main",),
    "freebsd_guest": ("main",),
    "jail": ("main", "base", "tidy"),
    "freebsd_member": ("main", "image", "tidy"),
}
_LOST = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
"""A connection that is refused."""


def provision(place: Path, *, lost: bool) -> str:
    """Run the playbook with roles that do nothing; return its output. ``lost``: the host is lost on the way."""
    own = place / "ansible_collections" / "shai" / "pools"
    for role, files in _ROLES.items():
        (own / "roles" / role / "tasks").mkdir(parents=True)
        for file in files:
            task: dict[str, object] = {"name": f"Work of {role} {file}", "ansible.builtin.raw": "true"}
            if lost and role == "bhyve_host":
                task["vars"] = _LOST
            (own / "roles" / role / "tasks" / f"{file}.yml").write_text(json.dumps([task]))
    (own / "playbooks").mkdir()
    playbook = own / "playbooks" / "bhyve_provision.yml"
    playbook.write_text((COLLECTION / "playbooks" / playbook.name).read_text())
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    groups = {
        "machine": {"hosts": {"machine": {}}},
        "virtual_machines": {"hosts": {"web-vm-0": {}}},
        "members": {"hosts": {"web-0": {"jail_machine": "web-vm-0", "freebsd_member_pool_directory": "/nowhere"}}},
    }
    inventory = place / "inventory.json"
    inventory.write_text(json.dumps({"all": {"vars": variables, "children": groups}}))
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(place),
        "LANG": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": str(place),
    }
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "--inventory", str(inventory), str(playbook)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) != lost, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("lost", [False, True])
def test_no_machine_is_made_on_a_host_that_is_not_prepared(tmp_path: Path, lost: bool) -> None:  # noqa: FBT001
    """Ansible ends a playbook when a host fails, and goes on to the next play when it is lost."""
    said = provision(tmp_path, lost=lost)
    for work in ("pool_vm main", "freebsd_guest main", "jail main", "freebsd_member main"):
        assert (f"Work of {work}" in said) is not lost
