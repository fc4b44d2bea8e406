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

// running returns which of the users processes run as, by their real, effective, saved or
// file system user. It sees the processes of its own PID namespace and of those within.
func running(users []uint32) (map[uint32]bool, error) {
	wanted, found := map[uint32]bool{}, map[uint32]bool{}
	for _, user := range users {
		wanted[user] = true
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	if len(processes) == 0 {
		return nil, errors.New("/proc lists no process; mount it")
	}
	for _, process := range processes {
		owners, err := ownersOf(process)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended in the meantime
		}
		if err != nil {
			return nil, err
		}
		for _, owner := range owners {
			if wanted[owner] {
				found[owner] = true
			}
		}
	}
	return found, nil
}

// ownersOf returns the users of a process.
func ownersOf(process string) ([]uint32, error) {
	text, err := os.ReadFile(filepath.Join(process, "status"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		list, found := strings.CutPrefix(line, "Uid:")
		if !found {
			continue
		}
		var owners []uint32
		for _, field := range strings.Fields(list) {
			owner, err := strconv.ParseUint(field, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%s/status: %w", process, err)
			}
			owners = append(owners, uint32(owner))
		}
		return owners, nil
	}
	return nil, fmt.Errorf("%s/status names no user", process)
}
