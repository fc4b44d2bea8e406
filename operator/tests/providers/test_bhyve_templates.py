# SPDX-License-Identifier: BSD-2-Clause
"""What the roles for FreeBSD write: names that fit, values that arrive unchanged, and permissions that are off."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from images.machine import mac
from tests.providers.standins import ROLES

HOSTILE = "{{ 1 + 1 }} 'quoted' \"double\" $HOME `id` $(id) %s \\ ; & | * ? # ~ ünïcode $(IMAGE)"
LONG = "a-pool-with-a-very-long-name-indeed-that-has-almost-63-letters"


class _Unsafe(str):
    """A text that Ansible must not take for a template, as the operator marks those of a pool."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def _unsafe(value: Any) -> Any:
    if isinstance(value, list):
        return [_unsafe(one) for one in value]
    if isinstance(value, dict):
        return {key: _unsafe(one) for key, one in value.items()}
    return _Unsafe(value) if isinstance(value, str) else value


def rendered(place: Path, role: str, template: str, variables: dict[str, Any]) -> str:
    """Render a role's template as Ansible does, with the role's defaults and variables."""
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars_files": [str(ROLES / role / "defaults/main.yml"), str(ROLES / role / "vars/main.yml"), "given.yml"],
        "vars": {"ansible_python_interpreter": sys.executable},
        "tasks": [
            {
                "ansible.builtin.template": {
                    "src": str(ROLES / role / "templates" / template),
                    "dest": str(place / "rendered"),
                    "mode": "0644",
                }
            }
        ],
    }
    (place / "play.yml").write_text(json.dumps([play]))
    given = {name: _unsafe(value) if isinstance(value, list) else value for name, value in variables.items()}
    (place / "given.yml").write_text(yaml.dump(given, Dumper=_Dumper, allow_unicode=True))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--inventory=localhost,", place / "play.yml"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return (place / "rendered").read_text()


MACHINE = {
    "pool_vm_pool": "web",
    "pool_vm_name": "web-vm-0",
    "pool_vm_root": "/srv/shai",
    "pool_vm_address": "192.0.2.20/24",
}


def test_the_settings_of_a_machine(tmp_path: Path) -> None:
    text = rendered(tmp_path, "pool_vm", "bhyve.conf.j2", MACHINE)
    settings = dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    assert settings["lpc.com1.path"] == "/dev/nmdmweb-vm-0A"
    assert settings["pci.0.3.0.path"] == "/srv/shai/vms/web-vm-0/disk.img"
    assert settings["pci.0.2.0.mac"] == mac("web-vm-0")
    assert settings["memory.size"] == "4096M"


def test_a_long_name_fits_the_kernel(tmp_path: Path) -> None:
    text = rendered(tmp_path, "pool_vm", "settings.j2", {**MACHINE, "pool_vm_name": f"{LONG}-vm-0"[:63]})
    settings = dict(line.split("=", 1) for line in text.splitlines())
    assert re.fullmatch("sh[0-9a-f]{12}", settings["vmm"])
    assert re.fullmatch("shb[0-9a-f]{8}", settings["bridge"])


JAIL = {
    "jail_pool": "web",
    "jail_name": "web-0",
    "jail_address": "192.0.2.33/24",
    "jail_gateway": "192.0.2.1",
    "jail_nameservers": ["192.0.2.53"],
    "jail_mounts": [{"source": "/usr/local/jails/images", "target": "/var/lib/shai/images"}],
    "jail_found": {
        "stdout_lines": ["absent", "14.3-RELEASE-p2-0123abcd", "mount", "mount.devfs", "shai", "suser", "chflags"]
    },
}


def test_the_configuration_of_a_jail(tmp_path: Path) -> None:
    text = rendered(tmp_path, "jail", "jail.conf.j2", JAIL)
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "# shai pool web jail web-0"
    for wanted in (
        "securelevel = 3;",
        "children.max = 0;",
        "allow.nomount;",
        "allow.mount.nodevfs;",
        "allow.nochflags;",
        "allow.shai;",
        "allow.suser;",
        'mount += "/usr/local/jails/base/14.3-RELEASE-p2-0123abcd/usr /usr/local/jails/web-0/usr nullfs ro 0 0";',
        'mount += "/usr/local/jails/images /usr/local/jails/web-0/var/lib/shai/images nullfs ro 0 0";',
        'exec.prestart += "rctl -a jail:web-0:maxproc:deny=1000";',
    ):
        assert wanted in lines
    mounts = [line for line in lines if line.startswith("mount +=")]
    assert all(" nullfs ro " in line for line in mounts), "a jail writes to its own files only"
    assert {line for line in lines if line.startswith("allow.")} == {
        "allow.nochflags;",
        "allow.nomount;",
        "allow.mount.nodevfs;",
        "allow.shai;",
        "allow.suser;",
    }


def test_names_of_interfaces_are_not_cut_off(tmp_path: Path) -> None:
    names = set()
    for ordinal in (1, 10, 11):
        text = rendered(tmp_path, "jail", "jail.conf.j2", {**JAIL, "jail_name": f"{LONG}-{ordinal}"[-63:]})
        found = re.search(r'vnet\.interface = "(.*)";', text)
        assert found
        assert len(found[1]) <= 15
        names.add(found[1])
    assert len(names) == 3, "names that begin alike differ"


def test_a_jail_without_the_module_may_not_use_it(tmp_path: Path) -> None:
    text = rendered(tmp_path, "jail", "jail.conf.j2", {**JAIL, "jail_module": False})
    assert "allow.noshai;" in text


MEMBER = {
    "freebsd_member_pool": "web",
    "freebsd_member_name": "web-0",
    "freebsd_member_jail": "web-0",
    "freebsd_member_pool_directory": "/var/lib/shai",
    "freebsd_member_address": "2001:db8::21",
    "freebsd_member_image_digest": "ab" * 32,
    "freebsd_member_variables": [{"name": "SAID", "value": HOSTILE}],
    "freebsd_member_runtimes": [
        {"name": "odd", "paths": [f"/{HOSTILE}", "/--data"]},
        {"name": "1e3", "paths": ["/lib"]},
    ],
    "freebsd_member_sources": ["https://facts.example/a,b/", 'unix:/run/it\'s "a"; `id` \\.sock'],
}


def words_of(settings: str) -> list[str]:
    """Return the monitor's flags as rc.subr(8) passes them on: the file is read, then the words are evaluated once."""
    script = 'eval "$1"; eval "set -- $shai_flags"; printf "%s\\0" "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", settings], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split("\0")[:-1]


def test_the_monitors_flags_arrive_unchanged(tmp_path: Path) -> None:
    words = words_of(rendered(tmp_path, "freebsd_member", "shai.conf.j2", MEMBER))
    said = next(word for word in words if word.startswith("SAID="))
    image = f"/var/lib/shai/images/{'ab' * 32}"
    allowed = [after for flag, after in itertools.pairwise(words) if flag == "--allow-source"]
    assert allowed == MEMBER["freebsd_member_sources"]
    assert said == "SAID=" + HOSTILE.replace("$(IMAGE)", image)
    assert words[words.index("--listen") + 1] == "[2001:db8::21]:8443"
    assert f"IMAGE={image}" in words
    assert [words[at + 1] for at, word in enumerate(words) if word == "--runtime"] == [
        f"odd=/{HOSTILE},/--data",
        "1e3=/lib",
    ]
    assert "--secrets" not in words


RC_SUBR = """load_rc_config() { . "$CONF/$1"; }
run_rc_command() { eval "set -- $command $command_args"; echo "$name"; printf "%s\n" "$@"; }
"""


def test_a_twin_runs_beside_its_member_with_the_members_data(tmp_path: Path) -> None:
    twin = {
        **MEMBER,
        "freebsd_member_name": "web-0-b",
        "freebsd_member_data_share": True,
        "freebsd_member_data_source": "/var/lib/shai/web-0/data",
        "freebsd_member_key_value": True,
        "freebsd_member_key_value_open": "0123",
    }
    settings = rendered(tmp_path, "freebsd_member", "shai.conf.j2", twin)
    (tmp_path / "shai_web_0_b").write_text(settings)
    script = rendered(tmp_path, "freebsd_member", "shai_twin.j2", twin)
    assert "# KEYWORD: nostart" in script, "a jail that starts has no twins"
    done = subprocess.run(
        ["sh", "-c", script.replace(". /etc/rc.subr", RC_SUBR), "sh", "start"],
        env={"CONF": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    name, *words = done.stdout.splitlines()
    assert name == "shai_web_0_b"
    assert words[words.index("--data") + 1] == "/var/lib/shai/web-0/data"
    assert words[words.index("--state") + 1] == "/var/lib/shai/web-0-b/state"
    assert words[words.index("-P") + 1] == "/var/run/shai_web_0_b.pid"
    assert "REDIS_SOCKET=/var/lib/shai/web-0-b/open-0123/store.sock" in words
    assert words[words.index(f"/var/lib/shai/images/{'ab' * 32}/bin/shai") + 1] == "monitor"
    assert words[-len(words_of(settings)) :] == words_of(settings), "hostile values arrive unchanged here, too"
    store = rendered(tmp_path, "freebsd_member", "shai_store.j2", twin)
    assert "name=shai_store_web_0_b\n" in store
    assert "# KEYWORD: nostart" in store
    own = rendered(tmp_path, "freebsd_member", "shai_store.j2", {**MEMBER, "freebsd_member_key_value": True})
    assert "name=shai_store\n" in own
    assert "nostart" not in own, "the member's own store starts with its jail"


def test_the_packet_filter_lets_in_services_and_administrators(tmp_path: Path) -> None:
    given = {"freebsd_guest_members": ["192.0.2.33", "192.0.2.34"], "freebsd_guest_ssh_sources": ["192.0.2.1"]}
    lines = rendered(tmp_path, "freebsd_guest", "pf.conf.j2", given).splitlines()
    assert "block all" in lines
    assert 'members = "{ 192.0.2.33, 192.0.2.34 }"' in lines
    assert 'administrators = "{ 192.0.2.1 }"' in lines
    assert [line for line in lines if "to $members" in line] == ["pass in quick proto tcp to $members port 1:9999"], (
        "what the kernel chooses for a task that listens anywhere is out of reach"
    )
    assert lines.index("block in quick on epair proto tcp to any port ssh") < lines.index(
        "pass in quick proto tcp from $administrators to any port ssh flags any keep state (sloppy)"
    )
    assert all("sloppy" in line for line in lines if "flags any" in line and not line.startswith("#")), (
        "pf does not know how a connection that it has not seen begin scales its windows, and would cut it off"
    )
