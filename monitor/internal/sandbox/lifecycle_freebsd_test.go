// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// parentsOf has the parent of every process that runs.
func parentsOf(t *testing.T) map[int]int {
	t.Helper()
	list, err := processesOf("kern.proc.proc", 0)
	check(t, err)
	parents := map[int]int{}
	for _, one := range list {
		if !one.ended {
			parents[one.pid] = one.parent
		}
	}
	return parents
}

// alive reports whether any of the processes runs. A zombie does not.
func alive(processes []int) bool {
	for _, process := range processes {
		found, err := processesOf("kern.proc.pid", process)
		if err == nil && len(found) == 1 && !found[0].ended {
			return true
		}
	}
	return false
}

// TestLaunchErrors: a start that fails says why, leaves nothing running and nothing
// open.
func TestLaunchErrors(t *testing.T) {
	launchErrors(t, "nothing", map[string]launchError{
		"no program":          {func(s *Spec) { s.Command = []string{"/nonexistent"} }, "execute /nonexistent: "},
		"program not runtime": {func(s *Spec) { s.Runtime = nil }, "not part of the runtime"},
		"no program at all": {func(s *Spec) {
			s.Command[0] = s.Capabilities[0].Path +
				"/allowed.txt"
			s.Runtime = []string{"/"}
		}, "not a program"},
		"no working directory": {func(s *Spec) { s.WorkingDirectory = "/nonexistent" },
			"working directory /nonexistent"},
		"no capability": {func(s *Spec) { s.Capabilities = []plan.Capability{{Prefix: "/x", Path: "/nonexistent"}} },
			"open capability"},
		"bad descriptor": {func(s *Spec) { s.Descriptors = map[int]*os.File{2: os.Stdin} }, "descriptor 2"},
		"bad CPU":        {func(s *Spec) { s.CPUs = []int{1023} }, "pin to CPUs [1023]"},
		"other loader":   {func(s *Spec) { s.Environment = []string{"LD_DEBUG=1"} }, "LD_DEBUG"},
		"foreign library": {func(s *Spec) { s.Environment = []string{"LD_PRELOAD=/elsewhere/x.so"} },
			"/elsewhere/x.so"},
	})
}

// TestInherited: a task has its standard descriptors, every reserved number, and
// nothing else. This process has much more open.
func TestInherited(t *testing.T) {
	leaked, err := os.Open("/")
	check(t, err)
	defer leaked.Close()
	for _, confined := range []bool{true, false} {
		spec, decider := world(t, "descriptors")
		spec.Confined = confined
		got := run(t, spec, decider)
		numbers := strings.Fields(got.output)
		for _, text := range numbers {
			// The victim's run-time system may have opened its poller's since.
			if number, err := strconv.Atoi(text); err != nil || number > wire.FDReservedEnd+3 {
				t.Errorf("confined %v: descriptor %q is open", confined, text)
			}
		}
		if len(numbers) < wire.FDReservedEnd {
			t.Errorf("confined %v: only %d descriptors: %s", confined, len(numbers), got.output)
		}
	}
}

// TestBaseline: without the sandbox the same program reads the secret.
func TestBaseline(t *testing.T) {
	spec, _ := world(t, "open $S/secret.txt")
	spec.Confined = false
	if _, _, got := attempt(t, spec, nil); got.output != secretText {
		t.Errorf("got %q, %v", got.output, got.err)
	}
}

// TestDecisionsInMemory: a prepared set has the format of package wire, and nobody can
// change it.
func TestDecisionsInMemory(t *testing.T) {
	root := t.TempDir()
	var directories []string
	for _, class := range []string{"30", "4"} {
		check(t, os.Mkdir(root+"/"+class, 0o755))
		directories = append(directories, root+"/"+class)
	}
	native, err := New(Options{}).PrepareNative(directories)
	check(t, err)
	defer native.Close()
	grant, err := native.Grant()
	check(t, err)
	defer grant.Release()
	head := make([]byte, 16)
	_, err = grant.Decisions.ReadAt(head, 0)
	check(t, err)
	for i, want := range []uint32{2, 0, 4, 30} {
		if got := binary.LittleEndian.Uint32(head[4*i:]); got != want {
			t.Errorf("word %d is %d, want %d", i, got, want)
		}
	}
	if _, err := grant.Decisions.WriteAt(head, 0); err == nil {
		t.Error("it can be written")
	}
	writable := unix.PROT_READ | unix.PROT_WRITE
	if _, err := unix.Mmap(int(grant.Decisions.Fd()), 0, 16, writable, unix.MAP_SHARED); err == nil {
		t.Error("it can be mapped for writing")
	}
	for name, wrong := range map[string]string{"missing": root + "/5", "no class": filepath.Dir(root)} {
		if _, err := New(Options{}).PrepareNative([]string{wrong}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestOneWay: on FreeBSD a pipe works in both directions, unless its rights are limited.
func TestOneWay(t *testing.T) {
	reader, writer, err := os.Pipe()
	check(t, err)
	defer reader.Close()
	defer writer.Close()
	if _, err := reader.Write([]byte("back")); err != nil {
		t.Errorf("pipes are one-way here: %v", err)
	}
	check(t, OneWay(reader, writer))
	if _, err := unix.Write(int(reader.Fd()), []byte("back")); err != unix.ENOTCAPABLE {
		t.Errorf("writing the reader: %v", err)
	}
	if _, err := unix.Read(int(writer.Fd()), make([]byte, 4)); err != unix.ENOTCAPABLE {
		t.Errorf("reading the writer: %v", err)
	}
	if _, err := unix.Write(int(writer.Fd()), []byte("forth")); err != nil {
		t.Error(err)
	}
}
