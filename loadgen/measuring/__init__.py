# SPDX-License-Identifier: BSD-2-Clause
"""The measurement: slices of load against stacks in several modes."""
