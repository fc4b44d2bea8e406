// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// probe examines the machine without changing anything.
func probe() Report {
	needed := []Feature{capsicumFeature(), trap()}
	shai := module()
	optional := []Feature{shai, jail(), users()}
	report := Report{System: system(), Backend: "capsicum", Enforcement: judge(needed, optional),
		Features: append(slices.Concat(needed, optional), documentWatch)}
	if shai.Present {
		report.Backend = "capsicum+shai.ko"
	}
	return report
}

func system() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "freebsd"
	}
	return fmt.Sprintf("freebsd %s %s", unix.ByteSliceToString(name.Release[:]),
		unix.ByteSliceToString(name.Machine[:]))
}

// capsicumFeature examines both parts of Capsicum: capability mode, and limited rights on
// descriptors.
func capsicumFeature() Feature {
	feature := Feature{Name: "Capsicum", Found: "missing", Needed: "options CAPABILITY_MODE and CAPABILITIES",
		Effect: "confines tasks to the files they hold; everything else they ask for"}
	mode, modeErr := unix.SysctlUint32("kern.features.security_capability_mode")
	rights, rightsErr := unix.SysctlUint32("kern.features.security_capabilities")
	if errors.Join(modeErr, rightsErr) == nil && mode != 0 && rights != 0 {
		feature.Found, feature.Present = "present", true
	}
	return feature
}

// moduleVersion is the version of shai.ko that this monitor is for.
const moduleVersion = 2

// documentWatch does not concern the confinement of tasks.
var documentWatch = Feature{Name: "fanotify", Found: "missing", Needed: "Linux 5.13",
	Effect: "documents that come, change or go are followed at once, otherwise by sweeps, within minutes"}

func module() Feature {
	feature := Feature{Name: "shai.ko", Found: "not loaded",
		Needed: fmt.Sprintf("version %d (kldload shai)", moduleVersion),
		Effect: "resets workers by snapshot, redirects refused calls, checks what channels deliver; without it workers are processes"}
	if version, err := unix.SysctlUint32("shai.version"); err == nil {
		feature.Found, feature.Present = fmt.Sprintf("version %d", version), version == moduleVersion
	}
	return feature
}

// trap examines PROC_TRAPCAP. With it, a process gets a signal for a refused call that it
// can ask the monitor for, if shai.ko does not redirect the call.
func trap() Feature {
	feature := Feature{Name: "PROC_TRAPCAP", Found: "missing", Needed: "FreeBSD 11",
		Effect: "signals what the kernel refuses, so that a task can ask for it"}
	if _, err := unix.SysctlRaw("kern.trap_enotcap"); err == nil { // one byte
		feature.Found, feature.Present = "present", true
	}
	return feature
}

func jail() Feature {
	feature := Feature{Name: "jail", Found: "not in a jail", Needed: "a jail for each pool member",
		Effect: "keeps pools of one host apart"}
	if jailed, err := unix.SysctlUint32("security.jail.jailed"); err == nil && jailed != 0 {
		feature.Found, feature.Present = "in a jail", true
	}
	return feature
}
