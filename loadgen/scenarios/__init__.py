# SPDX-License-Identifier: BSD-2-Clause
"""Named scenarios of load, each a file for Locust: ``locust -f loadgen/scenarios/spike.py``."""
