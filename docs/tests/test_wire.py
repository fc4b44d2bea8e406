# SPDX-License-Identifier: BSD-2-Clause
"""wire.md lists every record type of the headers once, with its number and size; the compiler compares them."""

import re
import subprocess
from collections.abc import Callable

import pytest

from testing.documents import pages

HEADER_ONLY = "\N{EN DASH}"
ENUMS = ("shai_type", "shai_request_type", "shai_stub_type", "shai_answer_type")


Rows = list[dict[str, str]]


def listed() -> Rows:
    """Return the rows of the tables of record types, by column."""
    tables = [table for table in pages.load("docs/wire.md").tables() if table[0][:2] == ["type", "name"]]
    return [dict(zip(table[0], row, strict=True)) for table in tables for row in table[1:]]


def enum_of(name: str) -> str:
    if name in {"PLACED", "ANSWER", "PLACE"}:
        return "shai_answer_type"
    return {"REQUEST": "shai_request_type", "STUB": "shai_stub_type"}.get(name.partition("_")[0], "shai_type")


def program(rows: Rows) -> str:
    """Return a C program that compiles if the headers agree: a switch with every type, and assertions about sizes."""
    lines = ['#include "shai_requests.h"']
    for enum in ENUMS:
        cases = [f"case SHAI_{row['name']}: return 1;" for row in rows if enum_of(row["name"]) == enum]
        lines += [f"int {enum}(enum {enum} type) {{ switch (type) {{", *cases, "} return 0; }"]
    for row in rows:
        name = row["name"]
        lines.append(f'_Static_assert(SHAI_{name} == {row["type"]}, "{name}");')
        size = re.match(r"\d+", row.get("size", ""))
        if size:
            struct = "shai_header" if row["body"].startswith(HEADER_ONLY) else f"shai_{name.lower()}"
            lines.append(f'_Static_assert(sizeof(struct {struct}) == {size[0]}, "size of {name}");')
    return "\n".join(lines) + "\n"


def compile_with_headers(text: str) -> str:
    """Return the compiler's messages."""
    command = ["gcc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", "runtime/include", "-x", "c", "-"]
    done = subprocess.run(command, input=text, cwd=pages.ROOT, capture_output=True, text=True, check=False)
    return done.stderr


def test_tables_and_headers_agree() -> None:
    assert not compile_with_headers(program(listed()))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda rows: rows[1:], "SHAI_REGISTER"),
        (lambda rows: [*rows, rows[0]], "duplicate case value"),
        (lambda rows: [{**rows[0], "type": "99"}, *rows[1:]], '"REGISTER"'),
        (lambda rows: [{**rows[0], "size": "8"}, *rows[1:]], "size of REGISTER"),
    ],
    ids=["missing", "twice", "number", "size"],
)
def test_a_wrong_row_is_noticed(change: Callable[[Rows], Rows], complaint: str) -> None:
    assert complaint in compile_with_headers(program(change(listed())))
