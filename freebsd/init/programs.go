// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	tests          = "/tests"
	agendaFile     = "/programs"
	barePrefix     = "bare:"
	programTimeout = 15 * time.Minute
)

// agenda is the content of /programs: one command line per line, words separated by
// spaces, the first ones of the form NAME=VALUE for the environment. Lines that begin
// with "bare:" run before the module is loaded, the others while it is. Empty lines and
// lines that begin with # are ignored.
type agenda struct {
	bare, loaded []string
}

// readAgenda returns an empty agenda if there is no file.
func readAgenda() (agenda, error) {
	var result agenda
	content, err := os.ReadFile(agendaFile)
	if os.IsNotExist(err) {
		return result, nil
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if command, bare := strings.CutPrefix(line, barePrefix); bare {
			result.bare = append(result.bare, strings.TrimSpace(command))
		} else {
			result.loaded = append(result.loaded, line)
		}
	}
	return result, err
}

// runPrograms runs command lines one after the other. Their output goes to the console.
func runPrograms(result *tally, prefix string, lines []string) {
	for _, line := range lines {
		result.check(prefix+line, runProgram(line))
	}
}

// runProgram runs one command line in its program's folder, so that a Go test finds its
// package's testdata.
func runProgram(line string) error {
	words := strings.Fields(line)
	environment := []string{"TMPDIR=/tmp", "HOME=/tmp", "PATH=/bin"}
	for len(words) > 0 && strings.Contains(words[0], "=") {
		environment = append(environment, words[0])
		words = words[1:]
	}
	if len(words) == 0 {
		return fmt.Errorf("%q names no program", line)
	}
	limited, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	command := exec.CommandContext(limited, words[0], words[1:]...)
	command.Dir = filepath.Dir(words[0])
	command.Env = environment
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// runGoTests runs every compiled Go test below /tests.
func runGoTests(result *tally) {
	_ = filepath.WalkDir(tests, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".test") {
			return nil //nolint:nilerr // without the folder there are no tests
		}
		result.check("Go tests of "+strings.TrimPrefix(filepath.Dir(path), tests+"/"),
			runProgram(path+" -test.timeout=10m"))
		return nil
	})
}
