# SPDX-License-Identifier: BSD-2-Clause
"""Print the fields of struct thread and struct proc of a FreeBSD sys/proc.h, one a line: structure and field.

Reads the header from standard input.
"""

import re
import sys

STRUCTURES = ("thread", "proc")


def body(header: str, structure: str) -> str:
    """Return what is between the braces of a structure, without comments and directives."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    found = re.search(rf"^struct {structure} \{{$(.*?)^\}};$", text, flags=re.DOTALL | re.MULTILINE)
    if not found:
        raise SystemExit(f"no struct {structure} in the header")
    return found.group(1)


def fields(text: str) -> list[str]:
    """Return the names that the declarations declare; a union without a name stands for its fields."""
    text = re.sub(r"union\s*\{([^{}]*)\}\s*;", r"\1", text)
    text = re.sub(r"\{[^{}]*\}", "", text)
    text = re.sub(r"\b[A-Z]+_(?:ENTRY|HEAD)\([^()]*\)", "queue", text)
    declarations = [part.strip() for part in text.split(";")]
    return [re.sub(r"\[[^\]]*\]", "", part).split()[-1].lstrip("*") for part in declarations if part]


def main() -> None:
    """Print the fields."""
    header = sys.stdin.read()
    for structure in STRUCTURES:
        for field in fields(body(header, structure)):
            print(structure, field)


if __name__ == "__main__":
    main()
