# SPDX-License-Identifier: BSD-2-Clause
"""Providers install and run members on hosts.

`interface` is what callers use and what another provider implements; docs/providers.md explains both.
"""
