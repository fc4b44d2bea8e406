// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrDamaged says that a catalog's file is not what the monitor wrote.
var ErrDamaged = errors.New("is damaged")

// Files of a catalog in its directory.
const (
	databaseName   = "catalog.db"
	classTableName = "classes"
)

// Check examines the catalog in a directory before it is opened. It fails with ErrDamaged
// if the catalog is damaged or lost, and with ErrInUse if another process has it open. It
// is no error if there is no catalog yet.
func Check(ctx context.Context, dir string) error {
	file := filepath.Join(dir, databaseName)
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(filepath.Join(dir, classTableName)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("catalog %s %w: the file is missing", file, ErrDamaged)
	}
	_, err := checkFile(ctx, file)
	return err
}

// The process that examines a file is this same program; see [CheckMain].
const (
	checkerName = "shai-catalog-checker"

	exitDamaged = 3
	exitInUse   = 4
)

// Limits of that process, since damage can send it round in circles or make it collect
// pages without end.
const (
	checkerSeconds = 120     // of processor time, and one more for each checkerShare bytes
	checkerShare   = 4 << 20 // bytes
	checkerHeap    = 1 << 30 // bytes, and four times the file
	checkerStack   = 64 << 20
)

// checkFile examines a catalog's file in a process of its own.
func checkFile(ctx context.Context, file string) (summary Summary, err error) {
	program, err := os.Executable()
	if err != nil {
		return summary, fmt.Errorf("check catalog %s: %w", file, err)
	}
	var failure bytes.Buffer
	command := exec.CommandContext(ctx, program, checkerName, file)
	command.Stderr = &failure
	output, err := command.Output()
	if ctx.Err() != nil {
		return summary, ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		if err := json.Unmarshal(output, &summary); err != nil {
			return summary, fmt.Errorf("check catalog %s: %w", file, err)
		}
		return summary, nil
	case !errors.As(err, &exit):
		return summary, fmt.Errorf("check catalog %s: %w", file, err)
	case exit.ExitCode() == exitInUse:
		return summary, fmt.Errorf("catalog %s: %w; stop the other monitor first", file, ErrInUse)
	case exit.ExitCode() == exitDamaged:
		return summary, fmt.Errorf("catalog %s %w: %s", file, ErrDamaged, output)
	}
	first, _, _ := strings.Cut(failure.String(), "\n")
	return summary, fmt.Errorf("catalog %s %w: reading it failed (%w): %.200s", file, ErrDamaged, err, first)
}

// CheckMain must be called in main, and in TestMain of every program that uses [Check],
// before anything else reads the arguments. In the process that Check makes, it takes over
// and does not return. In all others it does nothing.
func CheckMain() {
	if len(os.Args) != 3 || os.Args[1] != checkerName {
		return
	}
	file := os.Args[2]
	limitChecker(file)
	summary, err := examine(file)
	if errors.Is(err, ErrInUse) {
		os.Exit(exitInUse)
	}
	if err != nil {
		fmt.Print(err)
		os.Exit(exitDamaged)
	}
	if err := json.NewEncoder(os.Stdout).Encode(summary); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func limitChecker(file string) {
	var size int64
	if info, err := os.Stat(file); err == nil {
		size = info.Size()
	}
	debug.SetMaxStack(checkerStack)
	seconds := uint64(checkerSeconds + size/checkerShare) //nolint:gosec // a size is not negative
	var limit syscall.Rlimit
	limit.Cur, limit.Max = inLimit(seconds), inLimit(seconds)
	_ = syscall.Setrlimit(unix.RLIMIT_CPU, &limit) // without it, an endless loop is only seen by its user
	go func() {
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			metrics.Read(heap)
			if heap[0].Value.Uint64() > uint64(checkerHeap+4*size) { //nolint:gosec // a size is not negative
				fmt.Print("its pages refer to each other without end")
				os.Exit(exitDamaged)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
}
