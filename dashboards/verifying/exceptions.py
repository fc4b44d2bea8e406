# SPDX-License-Identifier: BSD-2-Clause
"""The panels that show nothing, or nothing but zero, in the demo, each with the reason."""

from __future__ import annotations

REASONS: dict[tuple[str, str], str] = {}
"""By board and panel."""
