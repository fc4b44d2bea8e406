// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// limitFiles sets how many files this process may open, and returns the limit before. It leaves out
// the functions that also change what the processes inherit that are started later.
func limitFiles(t *testing.T, to uint64) (before uint64) {
	t.Helper()
	var limit unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	before, limit.Cur = limit.Cur, to
	_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return before
}

// An open fails that the monitor cannot carry out because it has no descriptors left, and is
// reported, whether it could decide or not. The task gets an answer.
func TestOpensWithoutDescriptorsAreReported(t *testing.T) {
	for name, last := range map[string]string{"before it decides": "first", "after it decides": "second"} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			for _, file := range []string{"first", "second"} {
				check(t, os.WriteFile(filepath.Join(directory, file), nil, 0o644))
			}
			read, write, err := os.Pipe()
			check(t, err)
			defer read.Close()
			var before uint64
			decider := &scripted{open: func(request OpenRequest) Verdict {
				if request.Path == filepath.Join(directory, last) {
					before = limitFiles(t, 3)
				}
				if filepath.Base(request.Path) == "second" {
					return Verdict{}
				}
				return Verdict{Errno: unix.EACCES}
			}}
			script := "true <" + directory + "/first; true <" + directory + "/second; echo ended; while :; do :; done"
			task, err := newBackend(t).Start(t.Context(), Spec{Stdout: write,
				Spec: plan.Spec{Name: "opening", Command: []string{"/bin/sh", "-c", script}, Confined: true,
					WorkingDirectory: "/", Runtime: runtimeOf()}}, decider)
			write.Close()
			check(t, err)
			line, err := bufio.NewReader(read).ReadString('\n')
			if before != 0 {
				limitFiles(t, before)
			}
			check(t, err)
			check(t, unix.Kill(task.PID(), unix.SIGKILL))
			<-task.Done()
			decider.mutex.Lock()
			defer decider.mutex.Unlock()
			if before == 0 || line != "ended\n" || len(decider.unavailable) != 1 {
				t.Fatalf("%q, reported %v", line, decider.unavailable)
			}
			if call := decider.unavailable[0]; !strings.HasPrefix(call.Call, "open") || call.Errno != unix.EMFILE {
				t.Errorf("reported %s with %v", call.Call, call.Errno)
			}
		})
	}
}
