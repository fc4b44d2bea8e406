// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// raise gives the task another role, whose taint is at least as restrictive. The process
// waits meanwhile, and what it could write to is examined first. Nothing that the kernel
// enforces has to be tightened: natively it opens only what all roles may open. Called with
// mu held.
//
// After an error the role is the old one, though some descriptors may be closed. The caller
// reports the error.
func (a *acting) raise(request wire.Register, caller sandbox.Stopped) error {
	p, from, to := a.task.pipeline, a.role.Load(), a.task.roleNamed(request.Instance)
	if err := a.mayBecome(request.Instance, from, to); err != nil {
		return err
	}
	if p.Mode() == wire.ModeBaseline {
		a.role.Store(to) // it holds everything since its start
		return nil
	}
	if caller == nil {
		return unraised{unix.EOPNOTSUPP, "the process that registers does not wait while it is examined; use libshai"}
	}
	handles, err := examine(caller)
	if err != nil {
		return err
	}
	p.services.Binding.RLock()
	defer p.services.Binding.RUnlock()
	if err := a.isAtLeast(from, to); err != nil {
		return err
	}
	to = to.above(from)
	if err := a.mayTake(to); err != nil {
		return err
	}
	against, keeps := a.against(from, to, handles)
	if err := against.mayClose(request.Flags&wire.RegisterClose != 0); err != nil {
		return err
	}
	if err := against.close(caller); err != nil {
		return err
	}
	reason := fmt.Sprintf("from %s to %s; closed: %s", from.name, to.name, against.names(obstaclesRecorded))
	if err := p.record(audit.Event{Kind: audit.Taint, Task: a.task.name, Instance: to.name, Operation: "raise",
		Allowed: true, Reason: reason}); err != nil {
		return fmt.Errorf("the raise cannot be recorded: %w", err)
	}
	raised := to.with(keeps.ends)
	a.role.Store(raised)
	read, _ := p.endsOf(raised.ends())
	a.tracked.raise(to.subject.Taint, read, a.held(raised, keeps.files))
	return a.place(to, caller)
}

// mayBecome checks that the task's manifest, or that of the task that it has become, allows a
// role at all.
func (a *acting) mayBecome(name string, from, to *role) error {
	switch {
	case to == nil:
		return fmt.Errorf("this is task %s; it cannot register as %s", from.name, name)
	case to == a.task.roles[0] && !slices.Contains(from.raisesTo, name):
		return fmt.Errorf("this is task %s now; a taint is not lowered to that of %s: start the task again", from.name, name)
	case !slices.Contains(from.raisesTo, name):
		return fmt.Errorf("this is task %s; it cannot register as %s, which its raisesTo does not name", from.name, name)
	}
	return nil
}

// isAtLeast checks that a role's taint is not lower than another one's, by the facts as they
// are now.
func (a *acting) isAtLeast(from, to *role) error {
	p := a.task.pipeline
	found := policy.AtLeast(to.subject.Taint, from.subject.Taint, p.services.state(),
		policy.Environment{Now: time.Now()})
	if !found.Allowed {
		return fmt.Errorf("a taint is not lowered: that of %s is not as restrictive as that of %s: %s", to.name, from.name,
			found.Reason)
	}
	return nil
}

// mayTake decides whether the task may have the role now. Facts may have changed since the
// role was validated, when the task started, and the task may have read more than was
// declared: no write to the pipes and channels that it gets could be refused.
func (a *acting) mayTake(to *role) error {
	p := a.task.pipeline
	if err := a.task.checkFlows(to.subject, to.placements); err != nil {
		return err
	}
	_, written := p.endsOf(to.ends())
	if err := a.tracked.mayHold(to.subject, written, p.services.state(), time.Now()); err != nil {
		return err
	}
	for _, directory := range a.writes {
		if found := p.decideAhead(to.subject, policy.Write, directory.conduit); !found.Allowed {
			return fmt.Errorf("start the task again: since its start the kernel lets it write %s, which %s may not any more: %s",
				directory.name, to.name, found.Reason)
		}
	}
	return nil
}

// obstacles are what a process could write to, or read from, against the taint that it wants.
type obstacles []obstacle

type obstacle struct {
	number int // of the descriptor; -1: a mapping
	name   string
}

// kept is what a process has open and may use under the taint that it wants.
type kept struct {
	ends  []placement
	files []policy.Conduit // open for writing
}

// examine returns what the process could write to.
func examine(caller sandbox.Stopped) ([]sandbox.Handle, error) {
	handles, err := caller.Writable()
	var why sandbox.Unexamined
	switch {
	case errors.As(err, &why):
		return nil, unraised{unix.EBUSY, why.Error()}
	case err != nil:
		return nil, fmt.Errorf("examine what the task has open: %w", err)
	}
	return handles, nil
}

// against decides on everything that the process has open, once for each file.
func (a *acting) against(from, to *role, handles []sandbox.Handle) (found obstacles, keeps kept) {
	ends := a.endsAgainst(from, to, &keeps)
	written := map[string]writtenFile{}
	for _, handle := range handles {
		if handle.Given != 0 {
			if !keeps.hasEnd(handle.Given) {
				found = append(found, obstacle{handle.Number, "copy of descriptor " + strconv.Itoa(handle.Given)})
			}
			continue
		}
		file, decided := written[handle.Path]
		if !decided {
			file = a.fileAt(to, handle.Path)
			written[handle.Path] = file
			if file.allowed {
				keeps.files = append(keeps.files, file.conduit)
			}
		}
		if !file.allowed {
			found = append(found, obstacle{handle.Number, file.name})
		}
	}
	return append(found, ends...), keeps
}

// endsAgainst decides on the ends of pipes and channels that the process was given.
func (a *acting) endsAgainst(from, to *role, keeps *kept) (found obstacles) {
	for _, place := range from.ends() {
		if a.task.checkFlows(to.subject, []placement{place}) == nil {
			keeps.ends = append(keeps.ends, place)
			continue
		}
		found = append(found, obstacle{int(place.capability.Number), place.end.conduit})
	}
	return found
}

// hasEnd reports whether an end that was given at a number is kept.
func (k *kept) hasEnd(number int) bool {
	return slices.ContainsFunc(k.ends, func(place placement) bool { return int(place.capability.Number) == number })
}

// writtenFile is a file that is open for writing.
type writtenFile struct {
	name    string
	conduit policy.Conduit
	allowed bool // under the taint that the process wants
}

func (a *acting) fileAt(to *role, path string) writtenFile {
	p := a.task.pipeline
	conduit, known := p.services.conduitAt(path)
	if !known {
		return writtenFile{name: path}
	}
	return writtenFile{conduit.Name, conduit, p.decideAhead(to.subject, policy.Write, conduit).Allowed}
}

// mayClose refuses what cannot be closed, and, unless the task asks for it, to close anything.
func (o obstacles) mayClose(asked bool) error {
	mapped := slices.DeleteFunc(slices.Clone(o), func(one obstacle) bool { return one.number >= 0 })
	if len(mapped) > 0 {
		return unraised{unix.EBUSY, fmt.Sprintf("the task has mapped what the new taint may not write to (unmap it): %s", mapped)}
	}
	if len(o) > 0 && !asked {
		return unraised{unix.EBUSY, fmt.Sprintf("the task holds what the new taint may not use (close it, or ask for "+
			"SHAI_REGISTER_CLOSE): %s", o)}
	}
	return nil
}

// close replaces the descriptors by the null device, open for reading.
func (o obstacles) close(caller sandbox.Stopped) error {
	if len(o) == 0 {
		return nil
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("close what the new taint may not use: %w", err)
	}
	defer null.Close()
	files := map[int]*os.File{}
	for _, one := range o {
		files[one.number] = null
	}
	if err := caller.Place(files); err != nil {
		return fmt.Errorf("close %s: %w", o, err)
	}
	return nil
}

// place gives the process the ends of the role's pipes and channels.
func (a *acting) place(to *role, caller sandbox.Stopped) error {
	ends := map[int]*os.File{}
	for _, place := range to.ends() {
		ends[int(place.capability.Number)] = a.task.pipeline.conduits.end(place, place.end.slot, wire.ModeShai)
	}
	if len(ends) == 0 {
		return nil
	}
	if err := caller.Place(ends); err != nil {
		return fmt.Errorf("the taint is raised to that of %s, without its pipes and channels: %w", to.name, err)
	}
	return nil
}

func (o obstacle) String() string {
	if o.number < 0 {
		return "mapping of " + o.name
	}
	return fmt.Sprintf("%s (descriptor %d)", o.name, o.number)
}

// How many obstacles are named: to the task, whose reasons are short, and in the audit log.
const (
	obstaclesTold     = 3
	obstaclesRecorded = 100
)

func (o obstacles) String() string { return o.names(obstaclesTold) }

func (o obstacles) names(most int) string {
	if len(o) == 0 {
		return "nothing"
	}
	var names []string
	for _, one := range o[:min(len(o), most)] {
		names = append(names, one.String())
	}
	if more := len(o) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
