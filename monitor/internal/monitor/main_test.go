// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/sandbox"
)

// idleVariable names the environment variable that makes this test program wait for
// its end and do nothing else.
const idleVariable = "SHAI_TEST_IDLE"

func TestMain(m *testing.M) {
	sandbox.LaunchMain()
	catalog.CheckMain()
	if os.Getenv(idleVariable) != "" {
		idle()
	}
	if directory := os.Getenv(monitorDirectory); directory != "" {
		os.Exit(playMonitor(directory))
	}
	code := m.Run()
	removeBuilt()
	os.Exit(code)
}

// idle waits to be killed. It waits for a signal because waiting for nothing at all is
// an error of a Go program.
func idle() {
	killed := make(chan os.Signal, 1)
	signal.Notify(killed, syscall.SIGTERM)
	<-killed
	os.Exit(0)
}

// provided are the programs that the tests run in sandboxes, found once.
var provided struct {
	once sync.Once
	programs
	err error
}

// programs are folders with what the tests start.
type programs struct {
	probe   string // probe_worker
	library string // libshai.so
	// supervisor is a program's path; empty on systems without one.
	supervisor string
}

// needPrograms finds the programs, and skips where the machine cannot confine.
func needPrograms(t testing.TB) programs {
	t.Helper()
	needSandbox(t)
	provided.once.Do(func() { provided.programs, provided.err = providePrograms() })
	if provided.err != nil {
		t.Fatal(provided.err)
	}
	return provided.programs
}

// needSandbox skips where tasks cannot be confined; the features that are missing
// say why.
func needSandbox(t testing.TB) {
	t.Helper()
	if machine := sandbox.New(sandbox.Options{}).Probe(); machine.Enforcement == "none" {
		t.Skipf("this machine cannot confine tasks: %+v", machine.Features)
	}
}

// ofItself is this test program as something else, which a variable of the
// environment says; not yet started.
func ofItself(t testing.TB, variable string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), variable)
	return command
}

// idleProcess is a process that does nothing, not yet started.
func idleProcess(t testing.TB) *exec.Cmd { return ofItself(t, idleVariable+"=1") }
