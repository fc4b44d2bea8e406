// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// cgroupLimit is a limit for a task as a whole, which a controller of cgroups sets.
type cgroupLimit struct {
	controller string // the same name in both versions
	what       string // for messages: "64 processes"
	asked      bool   // by the task's specification: it does not start without
	version1   []cgroupSetting
	version2   []cgroupSetting
}

// cgroupSetting is a file of a cgroup, and what is written to it.
type cgroupSetting struct {
	file  string
	value uint64
}

// cgroupLimits returns the limits of a task, by cgroups(7) and the kernel's cgroup-v2.rst.
func cgroupLimits(spec Spec) []cgroupLimit {
	const period = 100_000 // microseconds, the kernel's default
	processes := []cgroupSetting{{"pids.max", spec.MaxProcesses()}}
	limits := []cgroupLimit{{"pids", fmt.Sprintf("%d processes", spec.MaxProcesses()), spec.Limits.Processes != 0,
		processes, processes}}
	if thousandths := spec.Limits.CPU; thousandths != 0 {
		quota := thousandths * period / 1000
		limits = append(limits, cgroupLimit{"cpu", fmt.Sprintf("%d thousandths of a processor", thousandths), true,
			[]cgroupSetting{{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", quota}},
			[]cgroupSetting{{"cpu.max", quota}}}) // the period stays
	}
	if bytes := spec.Limits.TotalMemory; bytes != 0 {
		limits = append(limits, cgroupLimit{"memory", fmt.Sprintf("%d bytes of memory", bytes), true,
			[]cgroupSetting{{"memory.limit_in_bytes", bytes}},
			[]cgroupSetting{{"memory.max", bytes}, {"memory.oom.group", 1}}}) // the task ends as a whole
	}
	return limits
}

// set sets the limit. cgroup is the task's of version 2, "" if it has none. If the controller is
// one of version 1, it makes a cgroup there and returns it. An error means that this machine
// cannot set the limit.
func (l cgroupLimit) set(cgroup string) (version1 string, err error) {
	missing := errors.New("the task has no cgroup of version 2")
	if cgroup != "" {
		missing = enable(l.controller, filepath.Dir(cgroup))
	}
	if missing == nil {
		return "", writeSettings(cgroup, l.version2)
	}
	parent, err := version1Of(l.controller).own()
	if err != nil {
		return "", fmt.Errorf("%w; %w", missing, err)
	}
	if version1, err = makeCgroupIn(parent); err != nil {
		return "", err
	}
	if err := writeSettings(version1, l.version1); err != nil {
		return "", errors.Join(err, unix.Rmdir(version1))
	}
	return version1, nil
}

func writeSettings(cgroup string, settings []cgroupSetting) error {
	for _, one := range settings {
		if err := writeWord(filepath.Join(cgroup, one.file), strconv.FormatUint(one.value, 10)); err != nil {
			return err
		}
	}
	return nil
}

// limitTask sets the limits of a task. It fails only if the task asks for one that this machine
// cannot set; the cgroups that it returns have been made then, too.
func limitTask(spec Spec, cgroup string) (version1 []string, err error) {
	for _, limit := range cgroupLimits(spec) {
		made, err := limit.set(cgroup)
		if made != "" {
			version1 = append(version1, made)
		}
		if err != nil && limit.asked {
			return version1, fmt.Errorf("limit the task to %s (shai doctor shows what is needed): %w: %w",
				limit.what, err, plan.ErrUnsupported)
		}
	}
	return version1, nil
}

// limitations examines whether and where each controller can limit tasks.
func limitations() []Feature {
	return []Feature{
		limitation("pids", "limit on processes", "a task makes no more processes and threads than its limit",
			"a task makes as many processes as the machine allows; one with resources.processes does not start"),
		limitation("cpu", "limit on processors", "a task takes no more processor time than its limit",
			"a task with resources.cpuMillicores does not start"),
		limitation("memory", "limit on memory", "a task takes no more memory than its limit",
			"a task with resources.totalMemoryMegabytes does not start"),
	}
}

func limitation(controller, name, effect, otherwise string) Feature {
	feature := Feature{Name: name, Found: "missing",
		Needed: fmt.Sprintf("the controller %s, writable to the monitor; of version 2, with no other process in the "+
			"monitor's cgroup", controller),
		Effect: otherwise}
	parent, err := tasksCgroup()
	if err == nil {
		err = mayEnable(controller, parent)
	}
	version := 2
	if err != nil {
		version = 1
		if parent, err = version1Of(controller).own(); err == nil {
			err = mayWrite(filepath.Join(parent, "cgroup.procs"))
		}
	}
	if err == nil {
		feature.Found, feature.Present = fmt.Sprintf("%s of version %d in %s", controller, version, parent), true
		feature.Effect = effect
	}
	return feature
}
