# SPDX-License-Identifier: BSD-2-Clause
"""Go; the tests that drive its page in a browser are Python."""
