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
)

const (
	executedMax = 6    // the program and five interpreters, as in Linux
	scriptLine  = 256  // bytes of a script that Linux examines (BINPRM_BUF_SIZE)
	linkerMax   = 4096 // bytes of a run-time linker's path, with NUL
)

// Executed returns the files that the kernel reads to execute a program, by their real
// paths: the program, the interpreters that lines with "#!" name, and the run-time linker
// of the last one. The kernel reads them for the task, without anybody's decision.
func Executed(program string) ([]string, error) {
	var files []string
	for next := program; next != ""; {
		if len(files) == executedMax {
			return nil, fmt.Errorf("execute %s: more than %d interpreters: %w", program, executedMax-1, syscall.ELOOP)
		}
		real, interpreter, err := interpreted(next)
		if err != nil {
			return nil, executionError(program, next, err)
		}
		files, next = append(files, real), interpreter
	}
	return files, nil
}

func executionError(program, file string, err error) error {
	var ofPath *fs.PathError
	if errors.As(err, &ofPath) {
		err = ofPath.Err
	}
	if file != program {
		err = fmt.Errorf("interpreter %s: %w", file, err)
	}
	return fmt.Errorf("execute %s: %w", program, err)
}

// interpreted returns a program's real path and the interpreter that it names, "" if it
// names none.
func interpreted(program string) (real, interpreter string, err error) {
	if !filepath.IsAbs(program) {
		return "", "", errors.New("not an absolute path")
	}
	if real, err = filepath.EvalSymlinks(program); err != nil {
		return "", "", err
	}
	info, err := os.Lstat(real)
	switch {
	case err != nil:
		return "", "", err
	case !info.Mode().IsRegular(): // opening a named pipe would block
		return "", "", fmt.Errorf("not a file: %w", syscall.EACCES)
	}
	file, err := os.Open(real)
	if err != nil {
		return "", "", err
	}
	defer file.Close()
	line := make([]byte, scriptLine)
	count, err := file.ReadAt(line, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	if script, isScript := bytes.CutPrefix(line[:count], []byte("#!")); isScript {
		interpreter, err = scriptInterpreter(script)
	} else {
		interpreter, err = linkerOf(file)
	}
	return real, interpreter, err
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
