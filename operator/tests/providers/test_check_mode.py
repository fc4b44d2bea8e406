# SPDX-License-Identifier: BSD-2-Clause
"""Check mode goes through on a host on which nothing has been done yet, changes nothing, and says what it lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shai_operator.providers.process import COLLECTION
from tests.providers.standins import world

if TYPE_CHECKING:
    from collections.abc import Mapping

FREEBSD = {
    "uname": "#!/bin/sh\ncase $1 in -p) echo amd64 ;; *) echo FreeBSD ;; esac\n",
    "kldstat": "#!/bin/sh\nexit 0\n",
    "devfs": "#!/bin/sh\necho rules\n",
}


def check(place: Path, playbook: str, groups: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
    """Run a playbook in check mode, with every connection to this machine; return what it prints."""
    (place / "ansible_collections/shai").mkdir(parents=True)
    (place / "ansible_collections/shai/pools").symlink_to(COLLECTION)
    common = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}
    children = {group: {"hosts": hosts} for group, hosts in groups.items()}
    (place / "inventory.json").write_text(json.dumps({"all": {"vars": common, "children": children}}))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--check", "--inventory", place / "inventory.json",
         COLLECTION / "playbooks" / playbook],
        env={**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}", "WORLD": str(place), "NO_COLOR": "1",
             "ANSIBLE_HOME": str(place / "home"), "ANSIBLE_COLLECTIONS_PATH": str(place)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = world(tmp_path)
    for name, text in FREEBSD.items():
        made.program(name, text)
    for name in ("stat", "sleep", "timeout", "sysctl", "stty"):
        (tmp_path / "bin" / name).unlink()
    return tmp_path


def test_a_freebsd_host(place: Path) -> None:
    image = {
        "architecture": "amd64", "checksum": {"algorithm": "sha512", "value": "a" * 128}, "compression": "xz",
        "mirrors": ["https://mirror.example"], "path": "image.raw.xz", "firstBoot": "nuageinit",
    }  # fmt: skip
    (place / "rom").touch()
    roles = {
        f"{role}_{name}": value
        for role in ("bhyve_host", "pool_vm")
        for name, value in {"pool": "web", "storage": {"directory": str(place / "store")}, "image": image,
                            "bootrom": str(place / "rom")}.items()
    }  # fmt: skip
    variables = {
        **roles,
        "pool_vm_owner": "us",
        "pool_vm_authorized_keys": ["ssh-ed25519 AAAA"],
        "pool_vm_firstboot_templates": str(Path(__file__).parents[3] / "images/firstboot"),
        "pool_vm_known_hosts": str(place / "known_hosts"),
        "freebsd_member_image_digest": "b" * 64,
        "freebsd_member_image_source": str(place),
        "freebsd_member_scratch": str(place),
        "freebsd_member_pool_directory": "/var/lib/shai",
        "freebsd_member_authority_certificate": "/none",
        "freebsd_member_authority_key": "/none",
    }
    member = {
        "jail_machine": "web-vm-0", "jail_pool": "web", "jail_name": "web-0", "jail_address": "192.0.2.33/24",
        "freebsd_member_pool": "web", "freebsd_member_name": "web-0", "freebsd_member_jail": "web-0",
        "freebsd_member_address": "192.0.2.33",
    }  # fmt: skip
    machine = {"pool_vm_name": "web-vm-0", "pool_vm_address": "192.0.2.20/24", "freebsd_guest_members": ["192.0.2.33"]}
    groups = {
        "machine": {"machine": {}},
        "virtual_machines": {"web-vm-0": machine},
        "members": {"web-0": member},
    }
    said = check(place, "bhyve_provision.yml", groups, variables)
    assert "Tidy the host" in said
    assert not (place / "store").exists()
    assert not (place / "known_hosts").exists()


@pytest.mark.parametrize("lacks", [False, True])
def test_a_linux_host(tmp_path: Path, lacks: bool) -> None:  # noqa: FBT001
    directory = tmp_path / "pool"
    variables = {
        "linux_host_directory": str(directory),
        "linux_host_image_source": str(tmp_path),
        "linux_host_image_digest": "b" * 64,
        "linux_host_scratch": str(tmp_path),
        "linux_host_python": "/bin/false" if lacks else sys.executable,
        "linux_member_pool_directory": str(directory),
        "linux_member_image_digest": "b" * 64,
        "linux_member_authority_certificate": "/none",
        "linux_member_authority_key": "/none",
    }
    member = {"linux_member_pool": "t", "linux_member_name": "t-0", "linux_member_address": "127.0.10.1"}
    groups = {"machine": {"machine": {}}, "members": {"t-0": member}}
    if lacks:
        with pytest.raises(AssertionError, match="the host lacks supervisor"):
            check(tmp_path, "provision.yml", groups, variables)
    else:
        assert f"t-0 would be installed in {directory}/t-0" in check(tmp_path, "provision.yml", groups, variables)
    assert not directory.exists()
