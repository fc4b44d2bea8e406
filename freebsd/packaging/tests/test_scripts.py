# SPDX-License-Identifier: BSD-2-Clause
"""What the package's scripts decide, with a stand-in for rc.subr(8).

They run for real only on FreeBSD (docs/records/2026-11-23-packages.md).
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from freebsd.packaging import __main__ as packaging
from freebsd.packaging import stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILES = packaging.PORT / "files"
# It runs the function before a start as rc.subr does, and prints the command instead of executing it.
_SUBR = """
load_rc_config() { . "$CONFIG"; }
err() { shift; echo "$*" >&2; exit 1; }
check_pidfile() { echo "$MONITOR"; }
wait_for_pids() { echo waits for $*; }
run_rc_command() {
    command=${shai_program:-$command}
    rc_flags=$shai_flags rc_pid=$DAEMON
    if [ $1 = stop ]; then $stop_cmd; exit; fi
    eval "_do=\\${${1}_precmd}"
    $_do || exit 1
    echo $command $rc_flags
}
"""


@pytest.fixture
def service(tmp_path: Path) -> Path:
    """Make the rc.d script, with the stand-in for rc.subr(8), and a data directory."""
    (tmp_path / "rc.subr").write_text(_SUBR)
    (tmp_path / "data").mkdir()
    text = (_FILES / "shai.in").read_text()
    assert text.count(". /etc/rc.subr\n") == 1
    script = tmp_path / "shai"
    script.write_text(text.replace("/etc/rc.subr", str(tmp_path / "rc.subr")).replace("%%PREFIX%%", "/usr/local"))
    return script


def done(script: Path, verb: str, daemon: object = "", monitor: object = "") -> subprocess.CompletedProcess[str]:
    """Run the script on processes that daemon(8) and the monitor are to be."""
    environment = {
        "CONFIG": str(script.with_name("rc.conf")), "PATH": "/usr/bin:/bin",
        "DAEMON": str(daemon), "MONITOR": str(monitor),
    }  # fmt: skip
    return subprocess.run(["sh", str(script), verb], env=environment, capture_output=True, text=True, check=False)


def started(script: Path, monitor: object = "", **variables: str) -> subprocess.CompletedProcess[str]:
    config = script.with_name("rc.conf")
    values = {"shai_data": str(script.with_name("data"))} | variables
    config.write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()))
    return done(script, "start", monitor=monitor)


def test_the_monitor_is_started_by_daemon(service: Path) -> None:
    result = started(service, shai_state="/var/db/x", shai_flags="--audit-size 1GiB", shai_log="/var/log/x")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == [
        *("/usr/sbin/daemon", "-c", "-f", "-H", "-R", "5", "-P", "/var/run/shai.pid"),
        *("-p", "/var/run/shai_monitor.pid", "-o", "/var/log/x", "/usr/local/bin/shai", "monitor"),
        *("--data", str(service.with_name("data")), "--state", "/var/db/x"),
        *("--socket", "/var/run/shai/monitor.sock", "--audit-size", "1GiB"),
    ]


def test_daemon_starts_another_program_if_asked_to(service: Path) -> None:
    """rc.subr(8) itself would run a variable of this name in the place of daemon(8)."""
    words = started(service, shai_program="/images/1/bin/shai").stdout.split()
    assert words[0] == "/usr/sbin/daemon"
    assert words[words.index("monitor") - 1] == "/images/1/bin/shai"


def test_the_manual_has_all_variables() -> None:
    used = re.findall(r'(?m)^: "\$\{(\w+):=|^shai_monitor="\$\{(\w+):-', (_FILES / "shai.in").read_text())
    manual = (stage.ROOT / "monitor" / "man" / "shai.8").read_text()
    assert {first or second for first, second in used} == set(re.findall(r"(?m)^\.It Va (shai_\w+)$", manual))


def test_messages_go_to_syslog_if_asked_for(service: Path) -> None:
    words = started(service, shai_log="syslog").stdout.split()
    assert words[words.index("-T") :][:4] == ["-T", "shai", "-o", "/dev/null"]


@pytest.mark.parametrize("variable", ["shai_program", "shai_data", "shai_state", "shai_socket", "shai_log"])
@pytest.mark.parametrize(
    "path", ["/x y", "/x;reboot", "/$(reboot)", "/`reboot`", "/x\ny", '/x"', "/x'", "/\u00e9", "/x*"]
)
def test_paths_that_a_shell_would_read_are_refused(service: Path, variable: str, path: str) -> None:
    result = started(service, **{variable: path})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f'{variable}="{path}": has characters with a meaning to the shell; choose another path\n'


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"shai_state": "state"}, 'shai_state="state": expected an absolute path\n'),
        ({"shai_data": "/nowhere"}, 'shai_data="/nowhere": there is no such directory; make it, or name another\n'),
        ({"shai_user": "www"}, "because it starts tasks as other users; remove shai_user\n"),
    ],
)
def test_mistakes_are_named(service: Path, variables: dict[str, str], error: str) -> None:
    result = started(service, **variables)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.endswith(error)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that a signal ends."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_daemon_is_stopped_and_the_monitor_waited_for(service: Path, sleeper: subprocess.Popen[bytes]) -> None:
    started(service)
    stopped = done(service, "stop", daemon=sleeper.pid, monitor=1)
    assert (stopped.returncode, stopped.stdout) == (0, f"Stopping shai.\nwaits for {sleeper.pid} 1\n")
    assert sleeper.wait(60) == -signal.SIGTERM


def test_a_monitor_without_daemon_is_stopped(service: Path, sleeper: subprocess.Popen[bytes]) -> None:
    """It would have the state, and nobody would start it again."""
    started(service)
    assert done(service, "stop", monitor=sleeper.pid).returncode == 0
    assert sleeper.wait(60) == -signal.SIGTERM


def test_a_monitor_without_daemon_is_stopped_before_a_start(service: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert f"waits for {sleeper.pid}" in started(service, monitor=sleeper.pid).stdout
    assert sleeper.wait(60) == -signal.SIGTERM


def test_what_does_not_run_is_not_stopped(service: Path) -> None:
    started(service)
    stopped = done(service, "stop")
    assert (stopped.returncode, stopped.stdout) == (1, "shai is not running.\n")


@pytest.mark.parametrize(
    ("enabled", "verified", "code"), [("YES", 0, 0), ("yes", 1, 3), ("NO", 1, 0), ("", 1, 0), ("maybe", 1, 0)]
)
def test_the_audit_log_is_checked_when_enabled(tmp_path: Path, enabled: str, verified: int, code: int) -> None:
    """A fault is output of the kind that periodic(8) always sends: exit code 3."""
    rc = tmp_path / "etc/rc.d/shai"
    rc.parent.mkdir(parents=True)
    rc.write_text(f"#!/bin/sh\necho asked for $1\nexit {verified}\n")
    rc.chmod(0o755)
    script = tmp_path / "410.shai-audit"
    script.write_text((_FILES / "410.shai-audit.in").read_text().replace("%%PREFIX%%", str(tmp_path)))
    result = subprocess.run(
        ["sh", str(script)], env={"daily_shai_audit_enable": enabled, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == code
    assert ("asked for oneverify" in result.stdout) == (enabled.upper() == "YES")


def test_the_log_that_is_turned_is_the_service_s() -> None:
    """newsyslog(8) asks daemon(8), by its pid file, to open the log anew."""
    lines = (_FILES / "newsyslog-shai.conf").read_text().splitlines()
    (line,) = [line for line in lines if not line.startswith("#")]
    assert line.split() == ["/var/log/shai.log", "600", "7", "10000", "*", "J", "/var/run/shai.pid"]
    text = (_FILES / "shai.in").read_text()
    assert 'pidfile="/var/run/shai.pid"' in text
    assert '"${shai_log:=/var/log/shai.log}"' in text
