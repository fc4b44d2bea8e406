# SPDX-License-Identifier: BSD-2-Clause
"""Ports for servers that tests start: the load generator's, for tests that may not import it."""

from loadgen.stacks.ports import free_port

__all__ = ["free_port"]
