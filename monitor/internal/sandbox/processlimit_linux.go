// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// limitProcesses limits the processes and threads of a task. cgroup is the task's of version 2,
// "" if it has none. If the controller is one of version 1, it makes a cgroup there
// and returns it. An error means that this machine cannot limit them.
func limitProcesses(cgroup string, limit uint64) (version1 string, err error) {
	missing := errors.New("the task has no cgroup of version 2")
	if cgroup != "" {
		missing = enable("pids", filepath.Dir(cgroup))
	}
	if missing == nil {
		return "", writeLimit(cgroup, limit)
	}
	parent, err := pidsVersion1.own()
	if err != nil {
		return "", fmt.Errorf("%w; %w", missing, err)
	}
	if version1, err = makeCgroupIn(parent); err != nil {
		return "", err
	}
	if err := writeLimit(version1, limit); err != nil {
		return "", errors.Join(err, unix.Rmdir(version1))
	}
	return version1, nil
}

func writeLimit(cgroup string, limit uint64) error {
	return writeWord(filepath.Join(cgroup, "pids.max"), strconv.FormatUint(limit, 10))
}

// limitsProcesses examines whether and where the processes of tasks can be limited.
func limitsProcesses() Feature {
	feature := Feature{Name: "limit on processes", Found: "missing",
		Needed: "the pids controller, writable to the monitor; of version 2, with no other process in the monitor's cgroup",
		Effect: "a task makes as many processes as the machine allows; one with resources.processes does not start"}
	parent, err := tasksCgroup()
	if err == nil {
		err = mayEnable("pids", parent)
	}
	version := 2
	if err != nil {
		version = 1
		if parent, err = pidsVersion1.own(); err == nil {
			err = mayWrite(filepath.Join(parent, "cgroup.procs"))
		}
	}
	if err == nil {
		feature.Found, feature.Present = fmt.Sprintf("pids.max of version %d in %s", version, parent), true
		feature.Effect = "a task makes no more processes and threads than its limit"
	}
	return feature
}
