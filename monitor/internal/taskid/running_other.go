// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux && !freebsd

package taskid

import "errors"

// running is not supported: no task runs on this system.
func running([]uint32) (map[uint32]bool, error) {
	return nil, errors.ErrUnsupported
}
