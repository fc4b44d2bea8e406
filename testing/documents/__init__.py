# SPDX-License-Identifier: BSD-2-Clause
"""The project's Markdown pages, read and executed: python -m testing.documents PAGE runs the commands of one."""
