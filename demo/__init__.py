# SPDX-License-Identifier: BSD-2-Clause
"""The demo: Sys-E on Kubernetes, from nothing to the overhead table, on one machine."""
