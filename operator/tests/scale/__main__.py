# SPDX-License-Identifier: BSD-2-Clause
"""Runs the operator; pools of provider `local` get stand-ins as members."""

from __future__ import annotations

import sys

from shai_operator import assembly
from shai_operator.__main__ import main
from tests.scale.provider import StandInProvider

vars(assembly)["LocalProvider"] = StandInProvider

if __name__ == "__main__":
    sys.exit(main())
