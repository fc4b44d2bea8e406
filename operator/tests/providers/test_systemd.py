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


@pytest.mark.parametrize("service", EXPOSURE)
def test_units_have_few_rights(tmp_path: Path, service: str) -> None:
    written(tmp_path, ROLE / "templates")
    most = f"--threshold={10 * EXPOSURE[service]:.0f}"
    command: list[str | Path] = [
        "systemd-analyze",
        "security",
        "--offline=true",
        most,
        tmp_path / f"shai-web-0-{service}.service",
    ]
    judged = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert judged.returncode == 0, judged.stdout


def test_a_unit_that_systemd_would_not_start_is_not_put_in_place(tmp_path: Path) -> None:
    for name in ("monitor.service.j2", "store.service.j2"):
        text = (ROLE / "templates" / name).read_text()
        (tmp_path / name).write_text(text.replace("/bin/sh", "/bin/no-such-program"))
    done = written(tmp_path, tmp_path)
    assert done.returncode != 0
    assert "no-such-program" in done.stdout
    assert list(tmp_path.glob("*.service")) == []
