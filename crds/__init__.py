# SPDX-License-Identifier: BSD-2-Clause
"""Custom resources: their schemas, from which the definitions and the reference page are generated."""
