// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// victimPath compiles the victim once.
var victimPath = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "victim")
	if err != nil {
		return "", err
	}
	path := filepath.Join(directory, "victim")
	compile := exec.Command("gcc", "-static", "-pthread", "-O1", "-Wall", "-Werror", "-I", "../../../runtime/include",
		"-o", path,
		"testdata/victim.c", "testdata/victim_processes.c", "testdata/victim_sessions.c",
		"testdata/victim_sharing.c", "testdata/victim_sealed.c", "testdata/victim_random.c",
		"testdata/victim_traces.c", "testdata/victim_breeding.c")
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

// spec confines a victim to the ground.
func (g ground) spec(t *testing.T, attempt string) Spec {
	t.Helper()
	program := victim(t)
	return Spec{Spec: plan.Spec{
		Name: "victim", Command: append([]string{program}, g.expand(strings.Fields(attempt))...), WorkingDirectory: "/",
		Runtime: []string{filepath.Dir(program), g.runtime},
		Perimeter: []plan.Directory{{Path: g.granted, Rights: plan.Read},
			{Path: g.written, Rights: plan.Read | plan.Write}, {Path: g.dropped, Rights: plan.Write}},
		Capabilities: []plan.Capability{{Prefix: "/shai/view", Path: g.granted}, {Prefix: "/index", Path: g.written}},
		Confined:     true,
	}}
}

// The victim's requests to the monitor.
const (
	askSecret  = "open $S/secret.txt"
	askAllowed = "open $G/allowed.txt"
)

// confinedVictim is a victim on a ground of its own.
func confinedVictim(t *testing.T, try string) Spec {
	t.Helper()
	return newGround(t).spec(t, try)
}

// channels adds a descriptor channel with one message to read at its native
// number and at its checked twin, a connection and a checked one.
func channels(t *testing.T, spec *Spec) {
	t.Helper()
	spec.Descriptors = map[int]*os.File{}
	for number, kind := range map[int]int{
		wire.FDChannel: unix.SOCK_SEQPACKET, wire.FDChannelChecked: unix.SOCK_SEQPACKET,
		wire.FDConnectionChecked: unix.SOCK_STREAM, wire.FDMonitor: unix.SOCK_SEQPACKET,
	} {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		check(t, err)
		near, far := os.NewFile(uintptr(pair[0]), "far end"), os.NewFile(uintptr(pair[1]), "task's end")
		t.Cleanup(func() { near.Close(); far.Close() })
		_, err = unix.Write(pair[0], []byte("message!"))
		check(t, err)
		spec.Descriptors[number] = far
	}
	spec.Descriptors[wire.FDConnection] = connection(t)
}

// connection is the task's end of a TCP connection, with one message to read.
func connection(t *testing.T) *os.File {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	t.Cleanup(func() { client.Close() })
	_, err = client.Write([]byte("message!"))
	check(t, err)
	accepted, err := listener.Accept()
	check(t, err)
	defer accepted.Close()
	file, err := accepted.(*net.TCPConn).File()
	check(t, err)
	t.Cleanup(func() { file.Close() })
	file.Fd() // makes it blocking
	return file
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
