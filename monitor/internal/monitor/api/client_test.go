// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Root, who runs the tests, may use every socket.
func TestForbiddenMonitor(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}
	err := (&Client{name: "a socket"}).unreachable(refused)
	if !strings.HasSuffix(err.Error(), "permission denied; only the monitor's user and root may use its socket") {
		t.Errorf("got %v", err)
	}
}
