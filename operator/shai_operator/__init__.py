# SPDX-License-Identifier: BSD-2-Clause
"""Shai's operator: it turns custom resources into monitors that enforce them.

Layers, importing only downwards: ``handlers`` (kopf), ``control`` (observe, reconcile, act), ``providers``,
``monitors`` and ``cluster`` (the outside), ``reconcile`` (pure decisions).
"""
