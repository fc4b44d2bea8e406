// SPDX-License-Identifier: BSD-2-Clause

//go:build unix

package api

import "syscall"

// privateSocket restricts the mode of a socket before it has a name, so that others can
// never connect. On a system that does not support this, the private directory of the
// socket has to suffice.
func privateSocket(_, _ string, connection syscall.RawConn) error {
	return connection.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
