// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
)

// A monitor that has no groups waits for none of its threads: one that takes no signals, as
// while it hands a task a descriptor, would keep it from being opened.
func TestGroupsAreLeftOnce(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only the superuser leaves groups")
	}
	if err := dropGroups(); err != nil {
		t.Fatal(err)
	}
	blocked, release, left := make(chan error), make(chan struct{}), make(chan error, 1)
	defer close(release)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		blocked <- unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{Val: [16]uint64{^uint64(0)}}, nil)
		<-release
	}()
	if err := <-blocked; err != nil {
		t.Fatal(err)
	}
	go func() { left <- dropGroups() }()
	select {
	case err := <-left:
		if groups, failure := syscall.Getgroups(); err != nil || failure != nil || len(groups) > 0 {
			t.Errorf("groups %v: %v, %v", groups, err, failure)
		}
	case <-time.After(waiting.Limit):
		t.Error("a thread that takes no signals is waited for")
	}
}
