// SPDX-License-Identifier: BSD-2-Clause

//go:build unix

package api

import "syscall"

// privateSocket narrows the mode of a socket before it has a name, so that there is
// no moment at which others could connect. Where the system does not support that,
// the socket's directory, which is private, has to do.
func privateSocket(_, _ string, connection syscall.RawConn) error {
	return connection.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
