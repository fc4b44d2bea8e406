# SPDX-License-Identifier: BSD-2-Clause
"""Providers turn "this host should have these members, configured so" into installed, running members.

`interface` is what callers use and what another provider implements; docs/providers.md explains both.
"""
