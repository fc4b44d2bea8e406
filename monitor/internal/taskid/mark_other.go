// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux

package taskid

// markOf marks nothing: a data directory that is made anew at its path is taken for
// the one before.
func markOf(string) (string, error) { return "", nil }
