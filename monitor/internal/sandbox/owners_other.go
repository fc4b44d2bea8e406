// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux || !amd64

package sandbox

import "errors"

// CanMapOwners returns why tasks cannot have users of their own that are the owners of their
// pipeline's files: this system has no mounts with other owners.
func CanMapOwners([]string) error {
	return errors.New("this system has no id-mapped mounts (Linux 5.12)")
}
