# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor of a virtual machine: exit codes of bhyve, and what crashes leave behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from testing.waiting import until
from tests.providers.standins import ROLES, world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.providers.standins import World

# A guest takes its exit code from a list; at the list's end it runs until it is told to power off.
BHYVE = """#!/bin/bash
touch "$WORLD/dev/vmm/${!#}"
code=$(head -n 1 "$WORLD/codes"); sed -i 1d "$WORLD/codes"
[ -z "$code" ] || exit "$code"
trap 'exit 1' TERM
[ ! -e "$WORLD/stubborn" ] || trap '' TERM
touch "$WORLD/up"
while :; do /bin/sleep 0.02; done
"""
BHYVECTL = '#!/bin/sh\nname=${1#--vm=}\nrm "$WORLD/dev/vmm/$name"\n'
SETTINGS = "name=web-vm-0\nvmm=web-vm-0\npool=web\nbridge=shb1\nbridge_address=192.0.2.1/24\nuplink=\n"


class Machine:
    """A machine's directory, and its supervisor."""

    def __init__(self, made: World) -> None:
        self.world = made
        self.place = made.place / "web-vm-0"
        self.place.mkdir()
        (self.place / "settings").write_text(SETTINGS)
        (self.place / "bhyve.conf").write_text("cpus=1\n")
        (self.place / "disk.img").write_text("disk")
        (made.place / "dev/nmdmweb-vm-0B").write_text("said on the console\n")
        made.program("bhyve", BHYVE)
        made.program("bhyvectl", BHYVECTL)
        made.program("pgrep", '#!/bin/sh\nkill -0 "$(cat "$WORLD/orphan")" 2>/dev/null && cat "$WORLD/orphan"\n')
        made.script("bhyve_host", "bridge.sh")
        self.script = made.script("bhyve_host", "vm.sh")

    def codes(self, *codes: int) -> None:
        (self.world.place / "codes").write_text("".join(f"{code}\n" for code in codes))

    def run(self) -> subprocess.CompletedProcess[str]:
        return self.world.run(self.script, str(self.place))

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["sh", self.script, self.place], env=self.world.environment(), stdout=subprocess.DEVNULL
        )

    @property
    def state(self) -> str:
        return (self.place / "state").read_text().strip()

    def taps(self) -> list[str]:
        return [file.name for file in (self.world.place / "interfaces").glob("tap*")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(world(tmp_path))
    made.codes()
    return made


@pytest.mark.parametrize(
    ("codes", "starts", "state"),
    [
        pytest.param([0, 0, 1], 3, "stopped", id="reboots, then is powered off"),
        pytest.param([2], 1, "stopped", id="halts"),
        pytest.param([3, 1], 2, "stopped", id="a triple fault is started again"),
        pytest.param([3, 4, 100, 3, 137], 5, "failed bhyve ended with 137, 5 times in a row", id="faults only"),
        pytest.param([4, 4, 4, 4, 0, 4, 1], 7, "stopped", id="a reboot ends the row of faults"),
    ],
)
def test_exit_codes(machine: Machine, codes: list[int], starts: int, state: str) -> None:
    machine.codes(*codes)
    done = machine.run()
    assert len(machine.world.calls("bhyve")) == starts, done.stdout
    assert machine.state == state
    assert done.returncode == (0 if state == "stopped" else 1)
    assert list((machine.world.place / "dev/vmm").iterdir()) == []
    assert machine.taps() == []


def test_faults_far_apart_are_not_in_a_row(machine: Machine) -> None:
    text = machine.script.read_text().replace("MOST_FAULTS=5", "MOST_FAULTS=2")
    machine.script.write_text(text.replace("GOOD_SECONDS=600", "GOOD_SECONDS=0"))
    machine.codes(3, 3, 1)
    machine.run()
    assert machine.state == "stopped"


def test_a_signal_before_the_guest_has_started_is_not_lost(machine: Machine) -> None:
    machine.world.program("cp", '#!/bin/sh\n/bin/cp "$@"\nkill -TERM "$PPID"\n')
    with machine.start() as running:
        assert running.wait(60) == 0
    assert machine.state == "stopped"
    assert machine.taps() == []
    assert machine.world.calls("bhyve") == []


def test_logs_are_bounded_while_a_guest_runs(machine: Machine) -> None:
    text = machine.script.read_text()
    for limit, small in (("LOG_LIMIT=10485760", "1000"), ("LOG_KEPT=1048576", "10"), ("LOG_SECONDS=60", "1")):
        assert limit in text
        text = text.replace(limit, f"{limit.split('=')[0]}={small}")
    machine.script.write_text(text)
    console, messages = machine.place / "console.log", machine.place / "supervisor.log"
    with machine.start() as running:
        until((machine.world.place / "up").exists, "the guest runs")
        for log in (console, messages):
            with log.open("a") as file:
                file.write("x" * 2000 + "0123456789")
        for log in (console, messages):
            until(lambda log=log: log.stat().st_size == 0, f"{log.name} is emptied")
            assert log.with_name(f"{log.name}.0").read_text() == "0123456789"
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0


def test_a_guest_is_given_its_tap_and_its_console_is_kept(machine: Machine) -> None:
    with machine.start() as running:
        until((machine.world.place / "up").exists, "the guest runs")
        assert machine.world.calls("bhyve") == ["-k bhyve.conf -o pci.0.2.0.backend=tap0 web-vm-0"]
        until(lambda: (machine.place / "console.log").read_text() == "said on the console\n", "the console is logged")
        assert "member: tap0" in (machine.world.place / "interfaces/shb1").read_text()
        assert (machine.place / "bhyve.conf.started").read_text() == "cpus=1\n"
        assert (machine.place / "disk.started").read_text() == "4\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    assert machine.state == "stopped"
    assert machine.taps() == []


def test_a_guest_that_does_not_power_off_is_killed(machine: Machine) -> None:
    machine.script.write_text(machine.script.read_text().replace("POWER_OFF_SECONDS=90", "POWER_OFF_SECONDS=1"))
    (machine.world.place / "stubborn").touch()
    with machine.start() as running:
        until((machine.world.place / "up").exists, "the guest runs")
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    assert machine.state == "stopped"


def test_nothing_is_left_that_would_write_to_the_messages_of_a_machine_that_was_powered_off(machine: Machine) -> None:
    """Whoever reads them waits until all that hold them have ended: daemon(8), for the service."""
    command: list[str | Path] = ["sh", machine.script, machine.place]
    with subprocess.Popen(command, env=machine.world.environment(), stdout=subprocess.PIPE, text=True) as running:
        until((machine.world.place / "up").exists, "the guest runs")
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=60)
    assert said.endswith("stopped\n")


def test_what_a_killed_process_left_is_removed(machine: Machine) -> None:
    """The machine in the kernel, its tap and cu's lock go; another machine's tap and a living lock stay."""
    made = machine.world
    (made.place / "dev/vmm/web-vm-0").touch()
    made.interface("tap0", "groups: tap", "description: shai vm web-vm-0")
    made.interface("tap1", "groups: tap", "description: shai vm web-vm-01")
    stale = made.place / "var/spool/lock/LCK..nmdmweb-vm-0B"
    with subprocess.Popen(["true"]) as ended:
        stale.write_text(f"{ended.pid:>10}\n")
    machine.codes(1)
    machine.run()
    assert made.calls("bhyvectl")[0] == "--vm=web-vm-0 --destroy"
    assert machine.taps() == ["tap1"]
    assert not stale.exists()


def test_a_console_in_use_is_not_taken_away(machine: Machine) -> None:
    lock = machine.world.place / "var/spool/lock/LCK..nmdmweb-vm-0B"
    lock.write_text(f"{os.getpid():>10}\n")
    machine.codes(1)
    machine.run()
    assert lock.exists()


@pytest.fixture
def orphan() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "1000"]) as process:
        yield process
        process.kill()


def test_a_guest_whose_supervisor_was_killed_is_ended(machine: Machine, orphan: subprocess.Popen[bytes]) -> None:
    (machine.world.place / "orphan").write_text(f"{orphan.pid}\n")
    machine.codes(1)
    with machine.start() as running:
        assert orphan.wait(60) == -signal.SIGTERM
        assert running.wait(60) == 0
    assert len(machine.world.calls("bhyve")) == 1


def test_a_machine_that_stays_in_the_kernel_is_no_success(machine: Machine) -> None:
    machine.world.program("bhyvectl", "#!/bin/sh\n")
    machine.codes(1)
    done = machine.run()
    assert done.returncode == 1
    assert machine.state == f"failed {machine.world.place}/dev/vmm/web-vm-0 stays after bhyvectl --destroy"


def test_clear_removes_what_is_left_and_starts_nothing(machine: Machine) -> None:
    (machine.world.place / "dev/vmm/web-vm-0").touch()
    machine.world.run(machine.script, "--clear", str(machine.place))
    assert list((machine.world.place / "dev/vmm").iterdir()) == []
    assert machine.world.calls("bhyve") == []


RC_SUBR = """
load_rc_config() { :; }
run_rc_command() { called=$1; shift; eval "\\$${called}_cmd" '"$@"'; }
"""
DAEMON = '#!/bin/bash\nwhile [ "${1#-}" != "$1" ]; do [ "$1" = -o ] && shift; shift; done\n"$@" >/dev/null 2>&1 &\n'


@pytest.fixture
def service(machine: Machine) -> Path:
    made = machine.world
    (made.place / "etc/rc.subr").write_text(RC_SUBR)
    made.program("daemon", DAEMON)
    (made.place / "machines").mkdir()
    (made.place / "machines/web-vm-0").symlink_to(machine.place)
    script = made.script("bhyve_host", "shai_vm.sh")
    script.write_text(script.read_text().replace("/usr/sbin/daemon", "daemon"))
    return script


def call(machine: Machine, service: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return machine.world.run(service, *words, shai_vm_machines=str(machine.world.place / "machines"))


def test_a_lock_of_a_crash_or_of_another_host_name_does_not_keep_a_machine_off(machine: Machine, service: Path) -> None:
    (machine.place / "run.lock").write_text("host-before-it-was-renamed 4711\n")
    (machine.place / "state").write_text("running\n")
    assert "is not running" in call(machine, service, "status").stdout
    assert call(machine, service, "start", "web-vm-0").returncode == 0
    until((machine.world.place / "up").exists, "the guest runs")
    assert call(machine, service, "status").stdout == "web-vm-0 is running\n"
    assert "is running" in call(machine, service, "start").stdout
    assert len(machine.world.calls("bhyve")) == 1
    assert call(machine, service, "stop").returncode == 0
    assert call(machine, service, "status").stdout == "web-vm-0 is not running: stopped\n"


def test_a_machine_that_another_process_runs_is_not_started_twice(machine: Machine, service: Path) -> None:
    with (machine.place / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert call(machine, service, "start").stdout == "web-vm-0 is running\n"
    assert machine.world.calls("bhyve") == []


def test_the_number_of_an_earlier_run_is_nobodys(
    machine: Machine, service: Path, orphan: subprocess.Popen[bytes]
) -> None:
    """A supervisor that has just started has the lock, and the number in run.pid is from before."""
    (machine.place / "run.pid").write_text(f"{orphan.pid}\n")
    with (machine.place / "run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert call(machine, service, "stop").returncode == 1
    assert orphan.poll() is None


def test_a_shutdown_leaves_time_for_guests(machine: Machine, service: Path) -> None:
    """The service's own limit is below that of rc.shutdown(8), and that below the one of init(8)."""
    machine.world.program("sysctl", '#!/bin/sh\n[ "$1" != -n ] || echo 120\n')
    call(machine, service, "start")
    assert "kern.init_shutdown_timeout=300" in machine.world.calls("sysctl")
    until((machine.world.place / "up").exists, "the guest runs")
    call(machine, service, "stop")
    tasks = yaml.safe_load((ROLES / "bhyve_host/tasks/programs.yml").read_text())
    (block,) = [task["ansible.builtin.blockinfile"]["block"] for task in tasks if "power off when" in task["name"]]
    for before, after in (("90", "240"), ("300", "300"), ("", "")):
        done = subprocess.run(
            ["sh", "-euc", f'rcshutdown_timeout="{before}"\n{block}\necho "$rcshutdown_timeout"'],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == after


def test_what_is_no_machine_is_not_started(machine: Machine, service: Path) -> None:
    done = call(machine, service, "start", "other")
    assert done.returncode == 1
    assert "is no virtual machine" in done.stderr
