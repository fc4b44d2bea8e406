# SPDX-License-Identifier: BSD-2-Clause
"""Pure decisions: observed objects in, actions out; no I/O, no clock, no kopf.

Every function can run twice, or again after a crash in the middle, with the same result: it uses only its arguments and
remembers nothing.
"""
