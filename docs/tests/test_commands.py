# SPDX-License-Identifier: BSD-2-Clause
"""Every command of a page is executed, in a checkout in which nothing but `make build` ran before."""

import subprocess
import sys

import pytest

from testing.documents import commands, pages

# Too slow for every run of the tests.
ELSEWHERE = {"docs/rollout.md": ".ci/run executes it, which takes some minutes"}

# Other content of fenced blocks.
OTHER_LANGUAGES = {"c", "json", "markdown", "mermaid", "shai", "text", "yaml"}


def with_commands() -> list[str]:
    return [name for name in pages.names() if any(True for _ in commands.of(pages.load(name)))]


def not_run() -> dict[str, str]:
    """Return the reason for each block of commands that is not executed."""
    reasons = {}
    for name in pages.names():
        for block in pages.load(name).blocks():
            reason = commands.reason_not_run(block) if block.language == commands.LANGUAGE else None
            if reason is not None:
                reasons[f"{name}:{block.line}"] = reason
    return reasons


@pytest.mark.parametrize("page", with_commands())
def test_its_commands_do_what_the_page_says(page: str) -> None:
    if page in ELSEWHERE:
        pytest.skip(ELSEWHERE[page])
    done = subprocess.run(
        [sys.executable, "-m", "testing.documents", page], cwd=pages.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", with_commands())
def test_it_begins_with_what_builds_its_programs(page: str) -> None:
    """The copy of the checkout has them already, and a reader's clone has not."""
    first = next(commands.of(pages.load(page)))
    builds = first.text.split()[:2] in (["make", "build"], ["make", "build-devcluster"], ["make", "demo"])
    assert builds, f"{page}:{first.line}: begin with make build"


@pytest.mark.parametrize(("place", "reason"), not_run().items())
def test_what_is_not_executed_has_a_reason(place: str, reason: str) -> None:
    assert reason, f"{place}: say after “not run:” why"
    pytest.skip(f"{place} is not executed: {reason}")


@pytest.mark.parametrize("page", pages.names())
def test_each_block_says_what_it_is(page: str) -> None:
    unmarked = [
        f"{page}:{block.line}: a block with {block.language or 'no language'}: "
        f"```console for commands, or one of {', '.join(sorted(OTHER_LANGUAGES))}"
        for block in pages.load(page).blocks()
        if block.language not in {commands.LANGUAGE, *OTHER_LANGUAGES}
    ]
    assert not unmarked, "\n".join(unmarked)
