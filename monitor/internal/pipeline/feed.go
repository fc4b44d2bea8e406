// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// What the supervisor of a task is told. Everything that changes is told with the
// pipeline's feeding held, after it has changed: the supervisor learns of changes in their
// order, and a supervisor that begins in between learns them once, or twice.

// SwitchTo puts another mode in force for tasks, and for sessions that begin, and records it. It
// returns when no session begins in another one. An error means that the mode stays.
func (p *Pipeline) SwitchTo(mode wire.Mode) error {
	previous, err := p.replaceMode(mode)
	if err != nil {
		return err
	}
	p.Fence()
	if err := p.record(audit.Event{
		Kind: audit.Mode, Operation: "set mode", Allowed: true, Reason: previous.String() + " to " + mode.String(),
	}); err != nil {
		p.services.Logger.Error("audit record is lost", "error", err)
	}
	return nil
}

// replaceMode tells supervisors, too. No open is decided on meanwhile: what mode audit lets a task
// read is found, or is not read any more.
func (p *Pipeline) replaceMode(mode wire.Mode) (previous wire.Mode, err error) {
	p.switching.Lock()
	defer p.switching.Unlock()
	if p.Mode() == wire.ModeAudit && mode != wire.ModeAudit {
		if err := p.mayLeaveAudit(); err != nil {
			return 0, err
		}
	}
	if mode == wire.ModeAudit {
		p.counts.TryOut()
	}
	p.feeding.Lock()
	defer p.feeding.Unlock()
	previous = wire.Mode(p.mode.Swap(uint32(mode)))
	for _, v := range p.supervised {
		v.send(supervision.Mode{Mode: mode})
	}
	return previous, nil
}

// mountsKept is how many directories of documents a supervisor keeps ready for sessions.
// Making another costs some 10 µs.
const mountsKept = 4096

// workersAhead is how many workers of a pipeline wait for connections, at most.
const workersAhead = 32

func (v *supervised) tellSettings() error {
	p := v.pipeline
	classes, err := p.services.Catalog.ClassTable().File()
	if err != nil {
		return err
	}
	defer classes.Close()
	limits, slots := v.task.sessionLimits(), uint32(len(v.task.entrance.slots.channels)) //nolint:gosec // at most wire.SlotsMax
	settings := supervision.Settings{
		Mode: p.Mode(), Slots: slots, IdleMax: min(slots, workersAhead),
		UnboundMS: count(limits.Login.Milliseconds()), LifetimeS: count(int64(limits.Lifetime.Seconds())),
		PerPrincipal: count(int64(limits.PerUser)), PerPeer: count(int64(limits.PerPeer)), MountsMax: mountsKept,
		Waiting:           uint32(limits.Waiting), //nolint:gosec // at most supervision.WaitingMax
		SessionsPerWorker: count(int64(limits.PerWorker)),
		Service:           v.task.service(), Pipeline: p.name,
	}
	for _, parameter := range v.task.spec.Parameters {
		switch parameter {
		case "user":
			settings.Parameters |= supervision.ParameterUser
		case "region":
			settings.Parameters |= supervision.ParameterRegion
		}
	}
	view, err := sandbox.ViewOf(p.services.View.Path(), v.task.user())
	if err != nil {
		return err
	}
	defer view.Close()
	return v.to.Send(settings, v.task.entrance.listening, view, classes)
}

// count returns a limit in the form of the records, in which 0 means that there is none.
func count(limit int64) uint32 { return uint32(max(1, min(limit, math.MaxUint32))) }

// tellSlots hands over the ends of pipes and channels that sessions use, slot by slot. The
// supervisor itself reads the channels, both twins of each: the mode of a session says from
// which of the two it gets transfers.
func (v *supervised) tellSlots() error {
	p := v.pipeline
	for number := range v.task.entrance.slots.channels {
		record := supervision.Slot{Slot: uint32(number)}
		var files []*os.File
		add := func(number int32, use supervision.Use, file *os.File) {
			if record.Count < supervision.SlotEndsMax {
				record.End[record.Count] = supervision.EndOfSlot{Number: number, Use: use}
			}
			record.Count++
			files = append(files, file)
		}
		for _, place := range v.task.perSession {
			isRead := place.capability.Kind == wire.KindChannel && !place.end.writer
			end := p.conduits.end(place, number, wire.ModeShai)
			switch {
			case isRead:
				add(place.capability.Number, supervision.UseRead, end)
				checked := p.conduits.end(place, number, wire.ModeDynamic)
				add(place.capability.Number, supervision.UseReadChecked, checked)
			default:
				add(place.capability.Number, supervision.UseGive, end)
			}
		}
		if record.Count > supervision.SlotEndsMax {
			return fmt.Errorf("a session would use %d ends of pipes and channels, at most %d are possible", record.Count,
				supervision.SlotEndsMax)
		}
		if err := v.to.Send(record, files...); err != nil {
			return err
		}
	}
	return nil
}

// tellStore says how the key-value store is reached, if the pipeline has one.
func (v *supervised) tellStore() error {
	store := v.pipeline.keyValueStore()
	if store == nil {
		return nil
	}
	access := store.Access()
	return v.to.Send(supervision.Store{Path: access.Socket, Auth: access.AuthCommand, Reset: access.ResetCommand})
}

func (v *supervised) tellKeys() error {
	state := v.pipeline.services.state()
	for _, principal := range state.Principals() {
		if err := v.tellKey(state, principal); err != nil {
			return err
		}
	}
	return nil
}

// tellKey tells of a principal's key, if that is a name with which one can log in: facts
// may hold any text.
func (v *supervised) tellKey(state *catalog.State, principal string) error {
	if !wire.IsName(principal) {
		return nil
	}
	record := supervision.Key{Principal: principal}
	if key, known := state.PrincipalKey(principal); known {
		record.Present = 1
		copy(record.Key[:], key)
	}
	return v.to.Send(record)
}

// tellRegions sends the table of regions in parts, unless the supervisor has it.
func (v *supervised) tellRegions() error {
	table := v.pipeline.services.regionTable()
	if v.regions != nil && slices.Equal(table, v.regions) {
		return nil
	}
	rest := table
	for first := uint32(1); ; first = 0 {
		part := rest[:min(len(rest), supervision.RegionsMax)]
		rest = rest[len(part):]
		record := supervision.Regions{First: first}
		for _, entry := range part {
			record.Regions = append(record.Regions, regionRecord(entry))
		}
		if len(rest) == 0 {
			record.Last = 1
		}
		if err := v.to.Send(record); err != nil {
			return err
		}
		if len(rest) == 0 {
			v.regions = append(regionTable{}, table...)
			return nil
		}
	}
}

func regionRecord(entry regionEntry) supervision.Region {
	address, bits := entry.prefix.Addr(), entry.prefix.Bits()
	if address.Is4() {
		bits += 96
	}
	return supervision.Region{Address: netip.AddrFrom16(address.As16()).As16(), Bits: uint32(bits), //nolint:gosec // at most 128
		Region: entry.region}
}

// tellSets tells of all sets that are in force, and of no other. One of which it cannot tell does not
// end the others' sessions.
func (v *supervised) tellSets() error {
	v.pipeline.mu.Lock()
	sets := make([]*capabilitySet, 0, len(v.pipeline.sets))
	for _, holds := range v.pipeline.sets {
		sets = append(sets, holds)
	}
	v.pipeline.mu.Unlock()
	for _, holds := range sets {
		switch err := v.tellSet(holds, 0); {
		case errors.Is(err, errUntold):
			v.pipeline.logUntold(holds, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// serves reports whether sessions of the task can be those of an instance: facts that the
// analysis follows may hold names with which nobody can log in.
func (v *supervised) serves(holds *capabilitySet) bool {
	for _, value := range []string{holds.subject.Session.Principal, holds.subject.Session.Region} {
		if value != "" && !wire.IsName(value) {
			return false
		}
	}
	return holds.subject.Task == v.task.name
}

// parameters returns the values of the instance's parameters that the supervisor knows;
// others are empty.
func (t *Task) parameters(holds *capabilitySet) (principal, region string) {
	if slices.Contains(t.spec.Parameters, "user") {
		principal = holds.subject.Session.Principal
	}
	if slices.Contains(t.spec.Parameters, "region") {
		region = holds.subject.Session.Region
	}
	return principal, region
}

// isDecided reports whether no policy question is left when a session of an instance is
// bound: the analysis has validated that data may leave to its user and flow through the
// session's pipes and channels, which depends on no address then, and no policy that is not
// enforced wants a record.
func (t *Task) isDecided(holds *capabilitySet) bool {
	p := t.pipeline
	if !holds.analyzed || p.services.state().Waive() != nil {
		return false
	}
	validated := func(set string, write bool) bool {
		return slices.ContainsFunc(holds.others, func(one analysis.Other) bool {
			return one.Set == set && one.Write == write
		})
	}
	for _, place := range t.perSession {
		if place.directory == "" && !validated(place.end.conduit, place.end.writer) {
			return false
		}
	}
	return validated(t.entrance.egress().Name, true)
}
