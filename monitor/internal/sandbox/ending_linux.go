// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import "path/filepath"

// ending examines how tasks end on this machine.
func ending() Feature {
	feature := Feature{Name: "ending of tasks", Present: true,
		Needed: "cgroups of version 2, writable to the monitor (Linux 5.14), or PID namespaces (the superuser's rights)"}
	path, err := makeCgroup()
	switch {
	case err == nil:
		removeCgroup(path)
		feature.Found = "cgroup.kill in " + filepath.Dir(path)
		feature.Effect = "a task and all processes that it made end with one write"
	case namespacesAvailable():
		feature.Found = "process groups and PID namespaces"
		feature.Effect = "a task and all processes that it made end with one signal"
	default:
		feature.Found, feature.Present = "process groups", false
		feature.Effect = "a confined task ends with one signal; in mode baseline its processes are searched for, and may not end"
	}
	return feature
}
