// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/waiting"
)

// The kernel says the same about a descriptor of another process as about one's own, and tells
// ends and files apart.
func TestDescriptorsOf(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	read, write, err := os.Pipe()
	check(t, err)
	near := farEnd(t, unix.SOCK_SEQPACKET)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	check(t, err)
	again, err := os.Open(name)
	check(t, err)
	seen := map[object]bool{}
	sleeper := exec.Command(itself(t), victimMarker, "sleep")
	sleeper.ExtraFiles = []*os.File{read, write, near, file, again}
	check(t, sleeper.Start())
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()
	list, err := descriptorsOf(sleeper.Process.Pid)
	check(t, err)
	for i, file := range sleeper.ExtraFiles {
		number := 3 + i
		d := list[number]
		own, err := objectOf(int(file.Fd()))
		if err != nil || own != d.object || own.kind == 0 || own.this == 0 || seen[own] {
			t.Errorf("%s: %+v, own %+v, %v", file.Name(), d, own, err)
		}
		seen[own] = true
		if writes := d.kind == kindFile && d.writes(); writes != (i == 3) {
			t.Errorf("%s: writes: %v", file.Name(), writes)
		}
	}
	if first, second := list[3], list[4]; first.other != second.this || first.this != second.other {
		t.Errorf("ends of a pipe: %+v, %+v", first, second)
	}
	if near := list[5]; near.waiting == 0 {
		t.Errorf("a socket with a message: %+v", near)
	}
	if file := list[6]; !file.hasName(name) || file.hasName(name+"x") {
		t.Errorf("%s has the path %q", name, file.path)
	}
	check(t, os.Link(name, name+"2"))
	if list[6].hasName(name) {
		t.Error("it has two names")
	}
}

// Mappings count that could write to a file.
func TestMappingsOf(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(name)
	check(t, err)
	check(t, file.Truncate(1<<16))
	for _, flags := range []int{unix.MAP_PRIVATE, unix.MAP_SHARED} {
		text, err := unix.Mmap(int(file.Fd()), 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, flags)
		check(t, err)
		text[0]++
		list, err := mappingsOf(os.Getpid())
		check(t, err)
		found := false
		for _, m := range list {
			found = found || m.described(m.path) == name
		}
		if found != (flags == unix.MAP_SHARED) {
			t.Errorf("flags %#x: among %+v: %v", flags, list, found)
		}
		check(t, unix.Munmap(text))
	}
}

// A traced process stays stopped, whoever wakes it, and goes on as it was before.
func TestTraced(t *testing.T) {
	pid := bystander(t)
	p := &traced{pid: pid}
	state := func() process {
		list, err := processesOf("kern.proc.pid", pid)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	for _, before := range []unix.Signal{0, unix.SIGSTOP} {
		if before != 0 {
			check(t, unix.Kill(pid, before))
			waiting.Until(t, "it stops", func() bool { return state().stopped })
		}
		check(t, p.stop(&task{}))
		check(t, unix.Kill(pid, unix.SIGCONT))
		if !state().stopped || state().parent != os.Getpid() {
			t.Errorf("it is %+v", state())
		}
		p.resume(&task{})
		waiting.Until(t, "it is as before", func() bool { return state().stopped == (before != 0) })
	}
	check(t, unix.Kill(pid, unix.SIGCONT))
	waiting.Until(t, "it goes on", func() bool { return !state().stopped })
}
