// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	doctor = "/shai"
	tests  = "/tests"
)

// runDoctor checks what `shai doctor` says of the module and of Capsicum. Its exit
// status is 1: nothing starts here yet. Without the program there is nothing to
// check.
func runDoctor(result *tally, loaded bool) {
	if _, err := os.Stat(doctor); err != nil {
		return
	}
	output, err := exec.Command(doctor, "doctor").CombinedOutput()
	fmt.Print(string(output))
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 1 {
		result.check("shai doctor ends with status 1", fmt.Errorf("%w", err))
		return
	}
	err = nil
	for feature, present := range map[string]bool{"shai.ko": loaded, "Capsicum": true, "PROC_TRAPCAP": true, "jail": false} {
		if says(output, feature) != present {
			err = errors.Join(err, fmt.Errorf("of %s it does not say that present is %v", feature, present))
		}
	}
	result.check(fmt.Sprintf("shai doctor, the module loaded: %v", loaded), err)
}

// says returns whether the line of a feature begins with ok.
func says(output []byte, feature string) bool {
	for line := range bytes.Lines(output) {
		fields := strings.Fields(string(line))
		if len(fields) > 1 && fields[1] == feature {
			return fields[0] == "ok"
		}
	}
	return false
}

// runGoTests runs every compiled Go test below /tests, in the folder it is in, so
// that it finds its package's testdata.
func runGoTests(result *tally) {
	_ = filepath.WalkDir(tests, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".test") {
			return nil //nolint:nilerr // without the folder there is nothing to run
		}
		command := exec.Command(path, "-test.timeout=10m")
		command.Dir = filepath.Dir(path)
		command.Env = []string{"TMPDIR=/tmp", "HOME=/tmp", "PATH=/bin"}
		output, err := command.CombinedOutput()
		if err != nil {
			fmt.Print(string(output))
		}
		result.check("Go tests of "+strings.TrimPrefix(filepath.Dir(path), tests+"/"), err)
		return nil
	})
}
