# SPDX-License-Identifier: BSD-2-Clause
"""Tests of providers with real playbooks, SSH servers and monitors."""
