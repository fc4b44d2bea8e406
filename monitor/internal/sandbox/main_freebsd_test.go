// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

func TestMain(m *testing.M) {
	LaunchMain()
	if len(os.Args) > 2 && os.Args[1] == victimMarker {
		playVictim(os.Args[2:])
	}
	if os.Getenv(monitorMarker) != "" {
		playMonitor(func(*Spec) {})
		return
	}
	os.Exit(m.Run())
}

// itself is this test program.
func itself(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	check(t, err)
	return path
}

// openDescriptors counts what this process has open.
func openDescriptors(*testing.T) int {
	count := 0
	for descriptor := range uintptr(4096) {
		if _, err := unix.FcntlInt(descriptor, unix.F_GETFD, 0); err == nil {
			count++
		}
	}
	return count
}

// The victim's requests to the monitor.
const (
	askSecret  = "ask $S/secret.txt"
	askAllowed = "ask $G/allowed.txt"
)

// confinedVictim is a victim in a world of its own.
func confinedVictim(t *testing.T, try string) Spec {
	t.Helper()
	spec, _ := world(t, try)
	return spec
}

// world makes a specification for an attempt, on a new ground.
func world(t *testing.T, try string) (Spec, *scripted) {
	t.Helper()
	return worldOn(t, newGround(t), try)
}

// worldOn confines a victim to the ground, with every kind of descriptor. $P is a
// process outside, $N a port that somebody listens on, $V the victim's program.
func worldOn(t *testing.T, g ground, try string) (Spec, *scripted) {
	t.Helper()
	program := itself(t)
	if strings.Contains(try, "program") {
		text, err := os.ReadFile(program)
		check(t, err)
		check(t, os.WriteFile(g.granted+"/program", text, 0o755))
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { listen.Close() })
	words := strings.Fields(try)
	if strings.Contains(try, "$P") {
		words = strings.Fields(strings.ReplaceAll(try, "$P", fmt.Sprint(bystander(t))))
	}
	for i, word := range words {
		words[i] = strings.NewReplacer("$N", fmt.Sprint(listen.Addr().(*net.TCPAddr).Port), "$V", program).Replace(word)
	}
	spec := Spec{Spec: plan.Spec{
		Name: "victim", Command: append([]string{program, victimMarker}, g.expand(words)...),
		WorkingDirectory: g.granted,
		Runtime:          []string{filepath.Dir(program), g.runtime},
		Perimeter: []plan.Directory{{Path: g.granted, Rights: plan.Read},
			{Path: g.written, Rights: plan.Read | plan.Write}},
		Capabilities: []plan.Capability{{Prefix: "/shai/view", Path: g.granted}, {Prefix: "/index", Path: g.written},
			{Prefix: "/others", Path: g.secret}},
		Confined: true,
	}, Descriptors: map[int]*os.File{}}
	for number, kind := range map[int]int{
		wire.FDChannel: unix.SOCK_SEQPACKET, wire.FDChannelChecked: unix.SOCK_SEQPACKET,
		wire.FDConnectionChecked: unix.SOCK_STREAM, wire.FDConnection: unix.SOCK_STREAM,
		wire.FDMonitor: unix.SOCK_SEQPACKET,
	} {
		spec.Descriptors[number] = farEnd(t, kind)
	}
	return spec, g.decider()
}

// farEnd is a socket that has a message to be read.
func farEnd(t *testing.T, kind int) *os.File {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	near, far := os.NewFile(uintptr(pair[0]), "far end"), os.NewFile(uintptr(pair[1]), "task's end")
	t.Cleanup(func() { near.Close(); far.Close() })
	_, err = unix.Write(pair[0], []byte("message!"))
	check(t, err)
	return far
}

// bystander is a process outside of the sandbox.
func bystander(t *testing.T) int {
	t.Helper()
	sleeper := exec.Command(itself(t), victimMarker, "sleep")
	check(t, sleeper.Start())
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	return sleeper.Process.Pid
}

// newBackend returns the backend that is tested.
func newBackend(testing.TB) Backend { return New(Options{}) }

// workers tells what workers say about an attempt: nothing here, where their programs wait
// for them.
type workers struct{ over <-chan struct{} }

func (workers) decided() int { return 0 }

func withSessions(*testing.T, *Spec) workers { return workers{} }
