// SPDX-License-Identifier: BSD-2-Clause

package catalog

// inLimit converts a limit to the type that this system's limits have.
func inLimit(value uint64) int64 { return int64(value) } //nolint:gosec // limits are small
