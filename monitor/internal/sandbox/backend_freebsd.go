// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// backend examines the machine and starts nothing: the kernel module is there
// (kernel/), the part of the monitor that confines tasks with it is not yet.
type backend struct{}

// New returns the backend of this operating system.
func New() Backend { return backend{} }

// LaunchMain does nothing where no launcher is needed.
func LaunchMain() {}

func unsupported() error {
	return fmt.Errorf("tasks are not yet started on FreeBSD (Linux 6.7 on amd64 has a backend): %w", ErrUnsupported)
}

// Start implements [Backend].
func (backend) Start(context.Context, Spec, Decider) (Task, error) { return nil, unsupported() }

// PrepareRuleset implements [Backend].
func (backend) PrepareRuleset([]Directory) (*Ruleset, error) { return nil, unsupported() }

// Probe implements [Backend].
func (backend) Probe() Report {
	needed := []Feature{
		{Name: "backend", Found: "missing", Needed: "Linux 6.7 on amd64", Effect: "confines tasks"},
		capsicum(),
	}
	optional := []Feature{module(), trap(), jail()}
	return Report{System: system(), Backend: "none", Enforcement: judge(needed, optional),
		Features: slices.Concat(needed, optional)}
}

func system() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "freebsd"
	}
	return fmt.Sprintf("freebsd %s %s", unix.ByteSliceToString(name.Release[:]), unix.ByteSliceToString(name.Machine[:]))
}

// capsicum needs both: the mode, and limited rights on descriptors.
func capsicum() Feature {
	feature := Feature{Name: "Capsicum", Found: "missing", Needed: "options CAPABILITY_MODE and CAPABILITIES",
		Effect: "would confine tasks to the directories they hold"}
	mode, modeErr := unix.SysctlUint32("kern.features.security_capability_mode")
	rights, rightsErr := unix.SysctlUint32("kern.features.security_capabilities")
	if errors.Join(modeErr, rightsErr) == nil && mode != 0 && rights != 0 {
		feature.Found, feature.Present = "present", true
	}
	return feature
}

// moduleVersion is the version of shai.ko that this monitor is for.
const moduleVersion = 1

func module() Feature {
	feature := Feature{Name: "shai.ko", Found: "not loaded", Needed: fmt.Sprintf("version %d (kldload shai)", moduleVersion),
		Effect: "would reset workers by snapshot, redirect refused calls, check what channels deliver"}
	if version, err := unix.SysctlUint32("shai.version"); err == nil {
		feature.Found, feature.Present = fmt.Sprintf("version %d", version), version == moduleVersion
	}
	return feature
}

// trap is what a process without the module has instead of redirection.
func trap() Feature {
	feature := Feature{Name: "PROC_TRAPCAP", Found: "missing", Needed: "FreeBSD 11",
		Effect: "would signal refused calls where the module is not loaded"}
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
