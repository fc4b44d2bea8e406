// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"os/exec"
	"path/filepath"
)

// builtProbe is the folder of the probe worker that this run has built.
var builtProbe string

// askedWhenGrown says how often a live session asks about a document that its set has gained
// since it began: its supervisor opens it.
const askedWhenGrown = "asked 0"

// providePrograms builds them.
func providePrograms() (programs, error) {
	top, err := filepath.Abs("../../..")
	if err != nil {
		return programs{}, err
	}
	runtime := filepath.Join(top, "runtime")
	given := programs{library: filepath.Join(top, "build/runtime"),
		supervisor: filepath.Join(top, "build/supervisor/shai-supervisor")}
	if err := command("make", "-s", "-C", filepath.Join(top, "supervisor"), "all"); err != nil {
		return programs{}, err
	}
	if err := command("make", "-s", "-C", runtime, "all"); err != nil {
		return programs{}, err
	}
	if builtProbe, err = os.MkdirTemp("", "shai-probe-"); err != nil {
		return programs{}, err
	}
	given.probe = builtProbe
	if err := os.Chmod(builtProbe, 0o755); err != nil { // for tasks, which run as other users
		return programs{}, err
	}
	for name, parts := range map[string]string{"probe_worker": "worker_*.c", "probe_raising": "raising_*.c"} {
		sources, err := filepath.Glob(filepath.Join(runtime, "tests/probe", parts))
		if err != nil {
			return programs{}, err
		}
		arguments := []string{"-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I" + runtime + "/include",
			"-o", filepath.Join(builtProbe, name), filepath.Join(runtime, "tests/probe", name+".c")}
		arguments = append(append(arguments, sources...), "-L"+given.library, "-lshai")
		if err := command("gcc", arguments...); err != nil {
			return programs{}, err
		}
	}
	return given, nil
}

// provideFrontEnd builds Sys-E's front end and its fast engine and returns their folder.
func provideFrontEnd() (string, error) {
	top, err := filepath.Abs("../../..")
	if err != nil {
		return "", err
	}
	for _, part := range []string{"syse/frontend", "syse/engine"} {
		if err := command("make", "-s", "-C", filepath.Join(top, part), "all"); err != nil {
			return "", err
		}
	}
	return filepath.Join(top, "build/syse"), nil
}

func removeBuilt() {
	if builtProbe != "" {
		os.RemoveAll(builtProbe)
	}
}

func command(name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return c.Run()
}
