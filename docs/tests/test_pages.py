# SPDX-License-Identifier: BSD-2-Clause
"""Reading pages, and executing and checking their commands."""

from pathlib import Path

import pytest

from testing.documents import commands
from testing.documents.commands import Command, Ending, PageError
from testing.documents.execution import CommandError, execute
from testing.documents.pages import Page


def run(directory: Path, text: str) -> None:
    execute("a.md", list(commands.of(Page("a.md", text))), directory, print)


def test_a_page_holds_commands() -> None:
    text = """\
# A title

```console
$ one   # why
$ two <<EOF
> text
> EOF
printed
> too
```

```console terminal:other stays
$ three
ready
```

```console not run: no such machine
$ four
```

```yaml
$ five
```
"""
    assert list(commands.of(Page("a.md", text))) == [
        Command(4, "one   # why", "", "", Ending.SUCCEEDS),
        Command(5, "two <<EOF\ntext\nEOF", "printed\n> too\n", "", Ending.SUCCEEDS),
        Command(13, "three", "ready\n", "other", Ending.STAYS),
    ]


@pytest.mark.parametrize("text", ["```console\none\n```", "```console\n```", "```console quietly\n$ one\n```"])
def test_a_block_that_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(PageError, match=r"a\.md:\d"):
        list(commands.of(Page("a.md", text)))


def test_headings_have_the_anchors_of_github() -> None:
    text = "# The `shai` command, *now*\n\nTitle\n=====\n\n## Title\n\n```text\n# no heading\n```\n"
    assert Page("a.md", text).anchors() == {"the-shai-command-now", "title", "title-1"}


def test_links_are_found_where_they_count() -> None:
    text = "[a](b.md) and `[not](this.md)`\n\n| x |\n| - |\n| [c][d] |\n\n[d]: e.md\n"
    assert [(link.line, link.target) for link in Page("a.md", text).links()] == [(1, "b.md"), (5, "e.md")]


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("", "anything\n"),
        ("two words\n", "two   words\n"),
        ("wrapped\nline\n", "wrapped line"),
        ("pid …, ready\n", "pid 4711, ready\n"),
        ("…\nthe end\n", "first\nsecond\nthe end\n"),
    ],
)
def test_output_is_as_shown(shown: str, printed: str) -> None:
    assert Command(1, "true", shown, "", Ending.SUCCEEDS).matches(printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("two words\n", "two words more\n"),
        ("a.c\n", "abc\n"),
        ("pid …, ready\n", "pid 4711, dead\n"),
        ("something\n", ""),
    ],
)
def test_output_is_not_as_shown(shown: str, printed: str) -> None:
    assert not Command(1, "true", shown, "", Ending.SUCCEEDS).matches(printed)


def test_commands_share_a_shell(tmp_path: Path) -> None:
    run(
        tmp_path,
        """\
```console
$ export NAME=bob; alias say=echo
$ cat > file <<EOF
> x
> EOF
```

```console
$ say $NAME $(cat file)
bob x
```
""",
    )


def test_terminals_do_not(tmp_path: Path) -> None:
    run(tmp_path, '```console\n$ NAME=bob\n```\n\n```console terminal:other\n$ echo "-$NAME-"\n--\n```\n')


def test_a_refusal_is_expected(tmp_path: Path) -> None:
    run(tmp_path, "```console refused\n$ echo no; false\nno\n```\n")
    with pytest.raises(CommandError, match="ended with status 0"):
        run(tmp_path, "```console refused\n$ true\n```\n")


def test_what_stays_is_waited_for_and_interrupted(tmp_path: Path) -> None:
    run(
        tmp_path,
        """\
```console terminal:one stays
$ touch begun; echo ready; sleep 1000
ready
```

```console
$ test -e begun
```
""",
    )


def test_what_stays_must_not_end(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="it ended, with status 0"):
        run(tmp_path, "```console stays\n$ echo no\nready\n```\n")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("$ exit 3", "ended with status 3"),
        ("$ false", "ended with status 1"),
        ("$ echo yes\nno", "the page shows something else"),
        ("$ echo 'unfinished", "ended with status"),
    ],
)
def test_a_command_that_does_something_else_fails(tmp_path: Path, lines: str, complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint) as failure:
        run(tmp_path, f"```console\n{lines}\n```\n")
    assert str(failure.value).startswith("a.md:2: ")
