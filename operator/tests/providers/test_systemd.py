# SPDX-License-Identifier: BSD-2-Clause
"""Units for systemd: the role's units pass systemd's own check, and invalid ones are not installed.

Nothing is started, so the test machine need not run systemd.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from shai_operator.providers.process import COLLECTION

ROLE = COLLECTION / "roles/linux_member"
pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


EXPOSURE = {"monitor": 4.6, "store": 1.5}
"""The most that systemd-analyze(1) may say of each unit, from 0 to 10; without settings, it says 9.6."""
FILTER = "SystemCallFilter=@system-service\nSystemCallFilter=~@privileged\n"
"""Of the store. Since it allows one privileged call again, systemd-analyze does not count what this forbids."""
OPEN = {
    "store": {
        "RootDirectoryOrRootImage": "0.1", "UserOrDynamicUser": "0.4", "PrivateUsers": "0.2", "ProtectHome": "0.1",
        "ProcSubset": "0.1", "DeviceAllow": "0.1", "IPAddressDeny": "0.2", "RestrictAddressFamilies_AF_UNIX": "0.1",
        "SystemCallFilter_privileged": "0.2", "SystemCallFilter_resources": "0.2",
    },
}  # fmt: skip
"""What each unit leaves open, by systemd-analyze(1), and how much that counts there. So a line that is taken out of a
unit is noticed, and `docs/providers.md` says why these are open."""
OPEN["monitor"] = OPEN["store"] | {
    "CapabilityBoundingSet_CAP_CHOWN_FSETID_SETFCAP": "0.2", "CapabilityBoundingSet_CAP_DAC_FOWNER_IPC_OWNER": "0.2",
    "CapabilityBoundingSet_CAP_KILL": "0.1", "CapabilityBoundingSet_CAP_NET_BIND_SERVICE_BROADCAST_RAW)": "0.1",
    "CapabilityBoundingSet_CAP_SET_UID_GID_PCAP": "0.3", "CapabilityBoundingSet_CAP_SYS_ADMIN": "0.3",
    "CapabilityBoundingSet_CAP_SYS_NICE_RESOURCE": "0.1", "CapabilityBoundingSet_CAP_SYS_PTRACE": "0.3",
    "Delegate": "0.1", "MemoryDenyWriteExecute": "0.1", "PrivateNetwork": "0.5", "ProtectControlGroups": "0.2",
    "RestrictAddressFamilies_AF_INET_INET6": "0.3", "RestrictAddressFamilies_AF_NETLINK": "0.1",
    "RestrictNamespaces_mnt": "0.1", "RestrictNamespaces_pid": "0.1", "RestrictNamespaces_user": "0.3",
    "RestrictSUIDSGID": "0.2",
    "SystemCallFilter_debug": "0.2", "SystemCallFilter_mount": "0.2",
}  # fmt: skip


def written(place: Path, templates: Path) -> subprocess.CompletedProcess[str]:
    """Write both units as the role does, to another directory."""
    task = {
        "ansible.builtin.template": {
            "src": f"{templates}/{{{{ item }}}}.service.j2",
            "dest": f"{place}/shai-{{{{ linux_member_name }}}}-{{{{ item }}}}.service",
            "mode": "0644",
            "validate": "{{ linux_member_unit_check }}",
        },
        "loop": "{{ linux_member_services }}",
    }
    play: dict[str, Any] = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars_files": [str(ROLE / "vars/main.yml")],
        "vars": {
            **yaml.safe_load((ROLE / "defaults/main.yml").read_text()),
            "ansible_python_interpreter": sys.executable,
            "linux_member_name": "web-0",
            "linux_member_pool": "web",
            "linux_member_pool_directory": "/srv/100%",
            "linux_member_key_value": True,
        },
        "tasks": [task],
    }
    (place / "play.yml").write_text(json.dumps([play]))
    command: list[str | Path] = [
        Path(sys.executable).parent / "ansible-playbook",
        "--inventory",
        "localhost,",
        place / "play.yml",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_units(tmp_path: Path) -> None:
    done = written(tmp_path, ROLE / "templates")
    assert done.returncode == 0, done.stdout
    monitor = (tmp_path / "shai-web-0-monitor.service").read_text()
    assert 'ExecStart=/bin/sh "/srv/100%%/web-0/monitor.sh"' in monitor
    assert "After=network-online.target shai-web-0-store.service" in monitor
    assert (tmp_path / "shai-web-0-store.service").exists()


def test_units_have_few_rights(tmp_path: Path) -> None:
    written(tmp_path, ROLE / "templates")
    for service, expected in OPEN.items():
        unit = tmp_path / f"shai-web-0-{service}.service"
        most = f"--threshold={10 * EXPOSURE[service]:.0f}"
        command: list[str | Path] = ["systemd-analyze", "security", "--offline=true", "--json=short", most, unit]
        judged = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert judged.returncode == 0, judged.stderr
        rows = json.loads(judged.stdout)
        assert {row["json_field"]: row["exposure"] for row in rows if row["set"] is False} == expected, service
    assert FILTER in (tmp_path / "shai-web-0-store.service").read_text()


def test_a_unit_that_systemd_would_not_start_is_not_put_in_place(tmp_path: Path) -> None:
    for name in ("monitor.service.j2", "store.service.j2"):
        text = (ROLE / "templates" / name).read_text()
        (tmp_path / name).write_text(text.replace("/bin/sh", "/bin/no-such-program"))
    done = written(tmp_path, tmp_path)
    assert done.returncode != 0
    assert "no-such-program" in done.stdout
    assert list(tmp_path.glob("*.service")) == []
