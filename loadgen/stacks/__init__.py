# SPDX-License-Identifier: BSD-2-Clause
"""Running pipelines: monitors, key-value stores and processes, of a pool member and of its twins."""
