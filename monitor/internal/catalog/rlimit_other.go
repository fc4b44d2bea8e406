// SPDX-License-Identifier: BSD-2-Clause

//go:build !freebsd

package catalog

// inLimit converts a limit to the type that this system's limits have.
func inLimit(value uint64) uint64 { return value }
