#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Print the numbers and names of a FreeBSD release's system calls, from its sys/syscall.h on standard input.

Compatibility calls, which the header only mentions in comments, have their release as a prefix (old: COMPAT_43).
Obsolete numbers lead nowhere, and are left out.
"""

import re
import sys

DEFINED = re.compile(r"#define\s+SYS_(\w+)\s+(\d+)\s*$")
COMPATIBLE = re.compile(r"/\* (\d+) is (old|freebsd\d+) (\w+) \*/")


def main() -> None:
    """Print one line a call: its number, a space, its name; in the order of the numbers."""
    calls: dict[int, str] = {}
    for line in sys.stdin:
        if found := DEFINED.match(line):
            calls[int(found[2])] = found[1]
        elif found := COMPATIBLE.search(line):
            calls[int(found[1])] = f"{found[2]}_{found[3]}"
    for number, name in sorted(calls.items()):
        if name != "MAXSYSCALL":
            print(number, name)


if __name__ == "__main__":
    main()
