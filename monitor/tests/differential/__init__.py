# SPDX-License-Identifier: BSD-2-Clause
"""The policy language a second time: written from docs/policies.md, decided by Z3, and compared with the product."""
