# SPDX-License-Identifier: BSD-2-Clause
"""Member configurations: which values are refused, and which change the digest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shai_operator.providers.interface import (
    ConfigurationError,
    Data,
    DataMode,
    Image,
    KeyValue,
    Login,
    Member,
    MemberConfiguration,
)

IMAGE = Image("default", "/images/default", "a" * 64)
MEMBER = Member("web", "web-0", 0, "local", "127.0.10.1")
CONFIGURATION = MemberConfiguration("/var/lib/shai", IMAGE, "installer-1", variables=(("JAVA", "/usr/bin/java"),))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"directory": "var/lib"}, "absolute"),
        ({"directory": "/var/../etc"}, "'..'"),
        ({"variables": (("1A", "x"),)}, "not a digit first"),
        ({"variables": (("A B", "x"),)}, "letters, digits"),
        ({"variables": (("IMAGE", "x"),)}, "defines it itself"),
        ({"variables": (("A", "x"), ("A", "y"))}, "given twice"),
        ({"variables": (("A", "x\nrm -rf /"),)}, "line break"),
        ({"runtimes": (("java", ("/lib", "$(JVA)/lib")),)}, r"runtime java: \$\(JVA\)/lib has \$\(JVA\), and only"),
        ({"runtimes": (("java", ("$(DATA)",)),)}, r"has \$\(DATA\), and only \$\(IMAGE\) and the pool's variables"),
        ({"sources": ("https://facts.example", "https://a@facts.example")}, "spec.allowedSources: 'https://a@facts"),
        ({"sources": ("unix:/run/a.sock\n--listen=:1",)}, "spec.allowedSources"),
        ({"sources": ("--listen=:1",)}, "spec.allowedSources"),
    ],
)
def test_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        replace(CONFIGURATION, **change)


def test_a_directory_too_long_for_sockets_is_refused_and_a_shorter_one_is_not() -> None:
    room = 60 - len("/web-0")
    fits, long = (replace(CONFIGURATION, directory="/" + "d" * (size - 1)) for size in (room, room + 1))
    assert str(fits.member_directory(MEMBER)).endswith("/web-0")
    with pytest.raises(ConfigurationError, match="choose a shorter"):
        long.member_directory(MEMBER)


@pytest.mark.parametrize(
    "change",
    [
        {"directory": "/srv"},
        {"image": replace(IMAGE, digest="b" * 64)},
        {"installer": "installer-2"},
        {"data": Data("/srv/data")},
        {"data": Data("/srv/data", DataMode.LINK)},
        {"key_value": KeyValue()},
        {"key_value": KeyValue("/srv/seed")},
        {"variables": (("JAVA", "/usr/bin/java17"),)},
        {"runtimes": (("java", ("$(IMAGE)", "$(JAVA)")),)},
        {"sources": ("https://facts.example",)},
        {"monitor_port": 9443},
    ],
    ids=repr,
)
def test_every_setting_changes_the_digest(change: dict[str, Any]) -> None:
    assert replace(CONFIGURATION, **change).digest(MEMBER) != CONFIGURATION.digest(MEMBER)


def test_the_digest_is_of_the_member_and_of_contents_only() -> None:
    assert CONFIGURATION.digest(replace(MEMBER, address="127.0.10.2")) != CONFIGURATION.digest(MEMBER)
    moved = replace(CONFIGURATION, image=replace(IMAGE, path="/elsewhere", name="other"))
    assert moved.digest(MEMBER) == CONFIGURATION.digest(MEMBER)
    # Objects store the digest, so it has to be the same with every version of the program.
    assert CONFIGURATION.digest(MEMBER) == "90e237eb96ac8fe27dfac923274eece6f0d577f8aa6e8b1dcd98b19586f2cf73"


def test_a_login_does_not_show_its_key() -> None:
    assert "canary" not in repr(Login("root", "canary", "ssh-ed25519 AAAA"))
