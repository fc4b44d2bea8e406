# SPDX-License-Identifier: BSD-2-Clause
"""What kopf calls: events of every kind, and admission. Nothing is decided here."""
