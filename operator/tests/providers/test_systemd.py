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

from shai_operator.providers.process import COLLECTION

ROLE = COLLECTION / "roles/linux_member"
pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def written(place: Path, template: Path) -> subprocess.CompletedProcess[str]:
    """Write both units as the role does, to another directory."""
    task = {
        "ansible.builtin.template": {
            "src": str(template),
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
    done = written(tmp_path, ROLE / "templates/service.j2")
    assert done.returncode == 0, done.stdout
    monitor = (tmp_path / "shai-web-0-monitor.service").read_text()
    assert 'ExecStart=/bin/sh "/srv/100%%/web-0/monitor.sh"' in monitor
    assert "After=network-online.target shai-web-0-store.service" in monitor
    assert (tmp_path / "shai-web-0-store.service").exists()


def test_a_unit_that_systemd_would_not_start_is_not_put_in_place(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.j2"
    wrong.write_text((ROLE / "templates/service.j2").read_text().replace("/bin/sh", "/bin/no-such-program"))
    done = written(tmp_path, wrong)
    assert done.returncode != 0
    assert "no-such-program" in done.stdout
    assert list(tmp_path.glob("*.service")) == []
