// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// victimPath compiles testdata/victim.c once.
var victimPath = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "victim")
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, "victim")
	compile := exec.Command("gcc", "-static", "-pthread", "-O1", "-Wall", "-Werror", "-I", "../../../runtime/include", "-o", path, "testdata/victim.c")
	if output, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the victim: %w\n%s", err, output)
	}
	return path, nil
})

func victim(t *testing.T) string {
	t.Helper()
	path, err := victimPath()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ground is a small world for a victim: what it is granted, what it may write,
// and a secret.
type ground struct{ granted, written, secret string }

func newGround(t *testing.T) ground {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := ground{filepath.Join(root, "granted"), filepath.Join(root, "written"), filepath.Join(root, "secret")}
	for _, directory := range []string{g.granted, g.written, g.secret, g.secret + "/empty"} {
		check(t, os.Mkdir(directory, 0o755))
	}
	check(t, os.WriteFile(g.granted+"/allowed.txt", []byte("allowed"), 0o644))
	check(t, os.WriteFile(g.written+"/old.txt", []byte("old"), 0o644))
	check(t, os.WriteFile(g.secret+"/secret.txt", []byte("secret"), 0o644))
	check(t, os.Symlink("secret.txt", g.secret+"/link"))
	check(t, os.Symlink("allowed.txt", g.granted+"/link"))
	check(t, os.Symlink(g.secret+"/secret.txt", g.granted+"/escape"))
	return g
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expand replaces $G, $W and $S by the directories.
func (g ground) expand(words []string) []string {
	replacer := strings.NewReplacer("$G", g.granted, "$W", g.written, "$S", g.secret)
	expanded := make([]string, len(words))
	for i, word := range words {
		expanded[i] = replacer.Replace(word)
	}
	return expanded
}

// spec confines a victim to the ground.
func (g ground) spec(t *testing.T, attempt string) Spec {
	t.Helper()
	program := victim(t)
	return Spec{
		Name: "victim", Command: append([]string{program}, g.expand(strings.Fields(attempt))...), WorkingDirectory: "/",
		Runtime:      []string{filepath.Dir(program)},
		Perimeter:    []Directory{{g.granted, Read}, {g.written, Read | Write}},
		Capabilities: []Capability{{"/shai/view", g.granted}, {"/index", g.written}},
		Confined:     true,
	}
}

func (g ground) decider() *scripted {
	return &scripted{open: func(request OpenRequest) Verdict {
		if request.Flags&(accessMode|changing) == unix.O_RDONLY || request.Flags&openPath != 0 {
			return allowBeneath(g.granted, g.written)(request)
		}
		return allowBeneath(g.written)(request)
	}}
}

// channels adds a descriptor channel with one message to read at its native
// number and at its checked twin, and a checked connection.
func channels(t *testing.T, spec *Spec) {
	t.Helper()
	spec.Descriptors = map[int]*os.File{}
	for number, kind := range map[int]int{
		wire.FDChannel: unix.SOCK_SEQPACKET, wire.FDChannelChecked: unix.SOCK_SEQPACKET,
		wire.FDConnectionChecked: unix.SOCK_STREAM, wire.FDConnection: unix.SOCK_STREAM, wire.FDMonitor: unix.SOCK_SEQPACKET,
	} {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		check(t, err)
		near, far := os.NewFile(uintptr(pair[0]), "far end"), os.NewFile(uintptr(pair[1]), "task's end")
		t.Cleanup(func() { near.Close(); far.Close() })
		_, err = unix.Write(pair[0], []byte("message!"))
		check(t, err)
		spec.Descriptors[number] = far
	}
}

// bystander is a process outside the sandbox, with a readable address.
func bystander(t *testing.T) (process int, address string) {
	t.Helper()
	sleeper := exec.Command("/bin/sleep", "1000")
	check(t, sleeper.Start())
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", sleeper.Process.Pid))
	check(t, err)
	start, _, _ := strings.Cut(string(maps), "-")
	return sleeper.Process.Pid, "0x" + start
}

// attempt runs the victim and says whether it succeeded, and with which error it
// failed; -1 is a signal.
func attempt(t *testing.T, spec Spec, decider Decider) (succeeded bool, errno syscall.Errno, got outcome) {
	t.Helper()
	got = run(t, spec, decider)
	if got.err == nil {
		return true, 0, got
	}
	if _, err := fmt.Sscanf(lastLine(got.output), "errno %d", &errno); err != nil || got.err.Error() != "exited with status 1" {
		return false, ^syscall.Errno(0), got
	}
	return false, errno, got
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
