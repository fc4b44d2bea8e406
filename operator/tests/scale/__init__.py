# SPDX-License-Identifier: BSD-2-Clause
"""The operator with members that nobody installs, for `make bench-operator`.

A stand-in answers like a member's monitor that has everything in force at once: bundles, comparisons, analyses and
tasks cost it nothing. So what is measured is the operator, its API server, and the requests between operator and
members, over mutual TLS. Playbooks, hosts and what monitors do with a bundle are not in the figures.
"""
