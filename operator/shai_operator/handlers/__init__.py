# SPDX-License-Identifier: BSD-2-Clause
"""The functions that kopf calls: watches and admission. They decide nothing."""
