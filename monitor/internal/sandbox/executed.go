// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"shai.dev/monitor/internal/sandbox/plan"
)

const (
	executedMax = 6    // the program and five interpreters, as in Linux; a run-time linker does not count
	scriptLine  = 256  // bytes of a script that Linux examines (BINPRM_BUF_SIZE)
	linkerMax   = 4096 // bytes of a run-time linker's path, with NUL
)

// errBeside is the error of a file that is not in the task's runtime.
var errBeside = errors.New("not in the task's runtime")

// Executed returns the files that the kernel reads to execute a program: the program, the
// interpreters that lines with "#!" name, and the run-time linker of the last one. The
// kernel reads them for the task, without anybody's decision. It does not look for a
// linker of the run-time linker. Executed reads files with the caller's rights, and only
// files that are beneath the runtime, which are real paths.
func Executed(program string, runtime []string) ([]plan.ExecutedFile, error) {
	var files []plan.ExecutedFile
	for next, isLinker := program, false; next != ""; {
		if len(files) == executedMax && !isLinker {
			return nil, fmt.Errorf("execute %s: more than %d interpreters: %w", program, executedMax-1, syscall.ELOOP)
		}
		one, err := examine(next, runtime)
		if err == nil && isLinker && one.isScript {
			err = errors.New("a script, not a run-time linker")
		}
		if err != nil {
			return nil, executionError(program, next, err)
		}
		files = append(files, plan.ExecutedFile{Name: filepath.Clean(next), Path: one.path})
		if isLinker {
			break
		}
		next, isLinker = one.interpreter, !one.isScript
	}
	return files, nil
}

// executionError names the program as the task's author does. The path in err is where
// links of the machine lead, and the task's user need not be able to read the file that
// names an interpreter.
func executionError(program, file string, err error) error {
	var ofPath *fs.PathError
	if errors.As(err, &ofPath) {
		err = ofPath.Err
	}
	if file != program {
		err = fmt.Errorf("an interpreter or run-time linker that it needs: %w", err)
	}
	return fmt.Errorf("execute %s: %w", program, err)
}

// executable is a file that the kernel can execute.
type executable struct {
	path        string // the real one
	isScript    bool
	interpreter string // of a script; the run-time linker of another program, "" if it names none
}

// examine reads what a program names as its interpreter.
func examine(program string, runtime []string) (found executable, err error) {
	if !filepath.IsAbs(program) {
		return found, errors.New("not an absolute path")
	}
	if found.path, err = filepath.EvalSymlinks(program); err != nil {
		return found, err
	}
	if !plan.Beneath(found.path, runtime...) {
		return found, errBeside
	}
	info, err := os.Lstat(found.path)
	switch {
	case err != nil:
		return found, err
	case !info.Mode().IsRegular(): // opening a named pipe would block
		return found, fmt.Errorf("not a file: %w", syscall.EACCES)
	}
	file, err := os.Open(found.path)
	if err != nil {
		return found, err
	}
	defer file.Close()
	line := make([]byte, scriptLine)
	count, err := file.ReadAt(line, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return found, err
	}
	var script []byte
	if script, found.isScript = bytes.CutPrefix(line[:count], []byte("#!")); found.isScript {
		found.interpreter, err = scriptInterpreter(script)
	} else {
		found.interpreter, err = linkerOf(file)
	}
	return found, err
}

// scriptInterpreter returns the path that follows "#!" in a script's first line.
func scriptInterpreter(script []byte) (string, error) {
	line, _, _ := bytes.Cut(script, []byte("\n"))
	words := bytes.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' || c == 0 })
	if len(words) == 0 {
		return "", fmt.Errorf("no interpreter after #!: %w", syscall.ENOEXEC)
	}
	return string(words[0]), nil
}

// linkerOf returns the run-time linker that a program names, or "" if it names none.
func linkerOf(program io.ReaderAt) (string, error) {
	file, err := elf.NewFile(program)
	if err != nil {
		return "", fmt.Errorf("not a program of this machine: %w", err)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			name := make([]byte, min(segment.Filesz, linkerMax))
			_, err := segment.ReadAt(name, 0)
			return strings.TrimRight(string(name), "\x00"), err
		}
	}
	return "", nil
}
