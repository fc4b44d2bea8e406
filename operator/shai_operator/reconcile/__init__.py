# SPDX-License-Identifier: BSD-2-Clause
"""What to do, decided purely: observed objects in, actions out; no I/O, no clock, no kopf.

Every function can run twice, or again after a crash half way, with the same result: it looks
only at what it is given, never at what it decided before.
"""
