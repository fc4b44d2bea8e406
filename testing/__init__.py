# SPDX-License-Identifier: BSD-2-Clause
"""Support for the tests of several parts."""
