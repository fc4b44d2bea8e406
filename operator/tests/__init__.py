# SPDX-License-Identifier: BSD-2-Clause
"""The operator's tests, by layer."""
