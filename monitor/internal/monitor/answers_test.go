// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox"
)

// A file that a task may write and not read must not become readable by being opened
// for both.
func TestOpenIsDecidedOnAsEverythingItIsUsedFor(t *testing.T) {
	m, p := bareMonitor(t)
	for _, test := range []struct {
		name    string
		path    string
		flags   int
		allowed bool
	}{
		{"read an open file", "/open/1.txt", unix.O_RDONLY, true},
		{"read and write an open file", "/open/1.txt", unix.O_RDWR, true},
		{"write a dropbox", "/dropbox/1.txt", unix.O_WRONLY, true},
		{"truncate a dropbox", "/dropbox/1.txt", unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, true},
		{"read a dropbox", "/dropbox/1.txt", unix.O_RDONLY, false},
		{"read and write a dropbox", "/dropbox/1.txt", unix.O_RDWR, false},
		{"read a dropbox by creating it", "/dropbox/1.txt", unix.O_RDONLY | unix.O_CREAT, false},
		{"read a dropbox by truncating it", "/dropbox/1.txt", unix.O_RDONLY | unix.O_TRUNC, false},
		{"no access but ioctl", "/dropbox/1.txt", unix.O_RDWR | unix.O_WRONLY, false},
		{"write a diary", "/diary/alice/1.txt", unix.O_WRONLY, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			verdict := p.Open(context.Background(), sandbox.OpenRequest{
				Task: bareTask{name: "collector", pid: os.Getpid()}, PID: os.Getpid(),
				Path: filepath.Join(m.options.Data, test.path), Flags: test.flags,
			})
			if allowed := verdict.Errno == 0; allowed != test.allowed {
				t.Errorf("allowed: %v, want %v (%s)", allowed, test.allowed, verdict.Reason)
			}
		})
	}
}

// A process that a worker forks has what the worker has read, and no session by which
// to tell.
func TestOpenByAProcessThatAWorkerForked(t *testing.T) {
	m, p := bareMonitor(t)
	child := idleProcess(t)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	self, worker := os.Getpid(), child.Process.Pid
	for _, test := range []struct {
		name        string
		task        string
		zygote, pid int
		allowed     bool
	}{
		{"the zygote", "worker", self, self, true},
		{"a worker without a session", "worker", self, worker, true},
		{"somebody else's child", "worker", worker, self, false},
		{"a child of a task without users", "collector", worker, self, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			verdict := p.Open(context.Background(), sandbox.OpenRequest{
				Task: bareTask{name: test.task, pid: test.zygote}, PID: test.pid,
				Path: filepath.Join(m.options.Data, "/open/1.txt"), Flags: unix.O_WRONLY,
			})
			if allowed := verdict.Errno == 0; allowed != test.allowed {
				t.Errorf("allowed: %v, want %v (%s)", allowed, test.allowed, verdict.Reason)
			}
		})
	}
}
