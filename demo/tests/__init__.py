# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the demo's parts; the demo itself is run by .ci/run."""
