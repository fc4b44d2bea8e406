# SPDX-License-Identifier: BSD-2-Clause
"""How the operator is installed: the Helm chart, and the kustomization that is written from it."""
