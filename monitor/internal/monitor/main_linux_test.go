// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"shai.dev/monitor/internal/sandbox"
)

// patience bounds how long a test waits for what should happen at once. No test
// asserts times.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	sandbox.LaunchMain()
	if directory := os.Getenv(monitorDirectory); directory != "" {
		os.Exit(playMonitor(directory))
	}
	code := m.Run()
	if built.directory != "" {
		os.RemoveAll(built.directory)
	}
	os.Exit(code)
}

// built are the programs that the tests run in sandboxes, made once.
var built struct {
	once      sync.Once
	directory string // of probe_worker
	library   string // of libshai.so
	err       error
}

// programs builds libshai and the probe, and skips where the machine cannot confine.
func programs(t testing.TB) (probe, library string) {
	t.Helper()
	for _, feature := range sandbox.New().Probe().Features {
		if !feature.Present && feature.Needed != "" {
			t.Skipf("this machine cannot confine tasks: %s is %s, needed is %s", feature.Name, feature.Found, feature.Needed)
		}
	}
	built.once.Do(buildPrograms)
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.directory, built.library
}

func buildPrograms() {
	runtime, err := filepath.Abs("../../../runtime")
	if err != nil {
		built.err = err
		return
	}
	built.library = filepath.Join(filepath.Dir(runtime), "build/runtime")
	if built.err = command("make", "-s", "-C", runtime, "all"); built.err != nil {
		return
	}
	if built.directory, built.err = os.MkdirTemp("", "shai-probe-"); built.err != nil {
		return
	}
	built.err = command("gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
		"-I"+runtime+"/include", "-o", built.directory+"/probe_worker", runtime+"/tests/probe/probe_worker.c",
		"-L"+built.library, "-lshai")
}

func command(name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return c.Run()
}
