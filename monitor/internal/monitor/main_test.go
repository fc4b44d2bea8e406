// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.LaunchMain()
	catalog.CheckMain()
	if directory := os.Getenv(monitorDirectory); directory != "" {
		os.Exit(playMonitor(directory))
	}
	if what := os.Getenv(shardOfWork); what != "" {
		os.Exit(playShard(what))
	}
	code := m.Run()
	removeBuilt()
	os.Exit(code)
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
	pipelinetest.NeedSandbox(t)
	provided.once.Do(func() { provided.programs, provided.err = providePrograms() })
	if provided.err != nil {
		t.Fatal(provided.err)
	}
	return provided.programs
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
