# SPDX-License-Identifier: BSD-2-Clause
"""What the root's conftest does about interrupts."""

import subprocess
import sys

import pytest

from testing.cluster import ROOT


@pytest.mark.parametrize("inherited", ["SIG_IGN", "default_int_handler"])
def test_programs_that_tests_start_can_be_interrupted(inherited: str) -> None:
    """A script's background job ignores interrupts, and what it starts would, too."""
    program = f"import signal; signal.signal(signal.SIGINT, signal.{inherited}); import conftest; "
    program += "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr
