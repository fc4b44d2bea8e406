// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
)

// opens asks for a file of the data directory in a task.
func (f *fixture) opens(task *pipelinetest.Task, process int, name string, flags int) sandbox.Verdict {
	f.t.Helper()
	path := filepath.Join(f.services.Options.Data, name)
	return f.Open(context.Background(), pipelinetest.OpenRequest(f.t, task, process, path, flags))
}

// A file with a document's name is opened only if it is the document that was catalogued.
func TestOpenOfAnotherFile(t *testing.T) {
	p := bare(t)
	path := filepath.Join(p.services.Options.Data, "/open/1.txt")
	open := func() bool {
		t.Helper()
		self := os.Getpid()
		return p.opens(pipelinetest.NewTask("collector", self), self, "/open/1.txt", unix.O_RDONLY).Errno == 0
	}
	if !open() {
		t.Error("the document is refused")
	}
	if err := errors.Join(os.WriteFile(path+"x", []byte("other"), 0o600), os.Rename(path+"x", path)); err != nil {
		t.Fatal(err)
	}
	if open() {
		t.Error("another file is opened under its name")
	}
	recorded := 0
	for _, record := range p.records() {
		if record.Kind == audit.Denial && record.Conduit == "/open/1.txt" &&
			strings.Contains(record.Reason, "is not a document that was catalogued") {
			recorded++
		}
	}
	if recorded != 1 {
		t.Errorf("%d records of the refusal", recorded)
	}
	p.apply(pipelinetest.Bare + "# again\n")
	if !open() {
		t.Error("the file is refused although it is catalogued now")
	}
}

// A file that a task may write and not read must not become readable by being opened
// for both.
func TestOpenIsDecidedOnAsEverythingItIsUsedFor(t *testing.T) {
	p := bare(t)
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
			self := os.Getpid()
			verdict := p.opens(pipelinetest.NewTask("collector", self), self, test.path, test.flags)
			if allowed := verdict.Errno == 0; allowed != test.allowed {
				t.Errorf("allowed: %v, want %v (%s)", allowed, test.allowed, verdict.Reason)
			}
		})
	}
}

// unsupervised is the backend of a system without supervisors.
type unsupervised struct{ sandbox.Backend }

func (unsupervised) Supervises() bool { return false }

// A process that a worker forks has what the worker has read, and no session by which
// to tell.
func TestOpenByAProcessThatAWorkerForked(t *testing.T) {
	p := bare(t)
	p.services.Backend = unsupervised{p.services.Backend} // a supervisor lets no worker fork
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
			verdict := p.opens(pipelinetest.NewTask(test.task, test.zygote), test.pid, "/open/1.txt", unix.O_WRONLY)
			if allowed := verdict.Errno == 0; allowed != test.allowed {
				t.Errorf("allowed: %v, want %v (%s)", allowed, test.allowed, verdict.Reason)
			}
		})
	}
}
