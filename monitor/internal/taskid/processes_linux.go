// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// process is what the kernel says about a process.
type process struct {
	parent int      // 0 if it is in another PID namespace
	users  []uint32 // real, effective, saved, file system user
	depth  int      // of its PID namespace: 1 if it is the monitor's own, more in a container
}

// processes lists the numbers of all processes, of those too that nobody has waited for.
func processes() ([]int, error) {
	directories, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	if len(directories) == 0 {
		return nil, errors.New("/proc lists no process; mount it")
	}
	list := make([]int, len(directories))
	for i, directory := range directories {
		if list[i], err = strconv.Atoi(filepath.Base(directory)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// statusOf describes a process. If it has ended, hasGone is true of the error.
func statusOf(pid int) (process, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return process{}, err
	}
	var status process
	for line := range strings.Lines(string(text)) {
		name, list, _ := strings.Cut(line, ":")
		if name == "NSpid" {
			status.depth = len(strings.Fields(list))
		}
		if name != "PPid" && name != "Uid" {
			continue
		}
		for _, field := range strings.Fields(list) {
			number, err := strconv.ParseUint(field, 10, 32)
			if err != nil {
				return process{}, fmt.Errorf("%s: %w", path, err)
			}
			if name == "Uid" {
				status.users = append(status.users, uint32(number))
			} else {
				status.parent = int(number)
			}
		}
	}
	if len(status.users) == 0 {
		return process{}, fmt.Errorf("%s names no user", path)
	}
	return status, nil
}

func hasGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
