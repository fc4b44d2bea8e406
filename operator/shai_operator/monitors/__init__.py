# SPDX-License-Identifier: BSD-2-Clause
"""The monitors: the HTTP API of pool members, and the parser that runs beside the operator."""
