// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// The sets that a supervisor has are those that it was told of in this file: it drops none by
// itself. All tell* functions are called with the pipeline's feeding held, so that records are
// sent in the order in which they are noted.

// toldSet is the last set of an instance that a supervisor was told of. It is kept when the
// supervisor has forgotten it, whose reports of bindings to it may come later.
type toldSet struct {
	holds     *capabilitySet
	forgotten bool
	ended     bool // with the sessions that were bound to it or to an earlier one
}

// lastTold returns the last set of an instance that the supervisor was told of, nil if there
// was none.
func (v *supervised) lastTold(instance string) *capabilitySet {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.told[instance].holds
}

// formerSet is one that the supervisor was told of before another one of its instance, which has less.
type formerSet struct {
	holds *capabilitySet
	fence uint64 // the last one before the other was sent: with the next, all bindings to this one are reported
}

// unsent stands for that fence until the other set is sent: one that comes first ends nothing.
const unsent = math.MaxUint64

// boundSet returns the set to which a binding to an instance, which is reported now, can have been: the last one
// that the supervisor was told of or, while bindings from before can be reported, one of those that has all of the
// others. It returns nil if there is none.
func (v *supervised) boundSet(instance string) *capabilitySet {
	v.mu.Lock()
	defer v.mu.Unlock()
	holds := v.told[instance].holds
	for _, former := range v.former[instance] {
		switch {
		case holds == nil || !former.holds.exceeds(holds):
		case holds.exceeds(former.holds):
			return nil
		default:
			holds = former.holds
		}
	}
	return holds
}

// keepFormer keeps the set that the supervisor was told of before, if that has something that the new one has
// not. Others need not be kept, and with sets that only grow there may be no fence for long. Called with mu held.
func (v *supervised) keepFormer(holds *capabilitySet) {
	instance := holds.subject.Instance
	if before := v.told[instance]; before.holds != nil && !before.ended && before.holds.exceeds(holds) {
		v.former[instance] = append(v.former[instance], formerSet{before.holds, unsent})
	}
}

// sentInstead notes that the set that follows the former ones of an instance is sent.
func (v *supervised) sentInstead(instance string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.former[instance] {
		if former := &v.former[instance][i]; former.fence == unsent {
			former.fence = v.last
		}
	}
}

// dropFormer drops the sets to which all bindings are reported when a fence was passed. Called with mu held.
func (v *supervised) dropFormer(passed uint64) {
	for instance, list := range v.former {
		if list = slices.DeleteFunc(list, func(one formerSet) bool { return one.fence < passed }); len(list) == 0 {
			delete(v.former, instance)
		} else {
			v.former[instance] = list
		}
	}
}

// boundTo returns the instance that the user and region of a session give now, and the set of it to which a
// session was bound whose binding is reported now, nil if there was none, or if it is not known which it was.
func (v *supervised) boundTo(principal, region string) (instance string, holds *capabilitySet) {
	values, err := v.pipeline.derive(v.task, principal, region)
	if err != nil {
		return "", nil // it follows no more
	}
	instance = instanceOf(v.task, values).Name()
	return instance, v.boundSet(instance)
}

// keyed are the parameters by which a supervisor knows a set.
type keyed struct{ principal, region string }

func (v *supervised) keyOf(holds *capabilitySet) keyed {
	principal, region := v.task.parameters(holds)
	return keyed{principal, region}
}

// inUse lists the sets that the supervisor has.
func (v *supervised) inUse() []*capabilitySet {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []*capabilitySet
	for _, last := range v.told {
		if !last.forgotten {
			list = append(list, last.holds)
		}
	}
	return list
}

// forget notes that the supervisor has no set under a key any more.
func (v *supervised) forget(key keyed) {
	instance := v.current[key]
	if last, known := v.told[instance]; known {
		last.forgotten = true
		v.told[instance] = last
	}
	delete(v.current, key)
}

// endSets notes that the supervisor ends the sessions of instances: whose binding is reported and that goes
// on is bound to a set of which the supervisor is told later. Called with mu held.
func (v *supervised) endSets(instances ...string) {
	for _, instance := range instances {
		delete(v.former, instance)
		if last, known := v.told[instance]; known {
			last.ended = true
			v.told[instance] = last
		}
	}
}

// dropEnded drops what is kept of forgotten sets whose window has ended by an instant: no binding to them
// is accepted any more, and there is another one for each user and window.
func (v *supervised) dropEnded(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.told, func(_ string, last toldSet) bool {
		return last.forgotten && !last.holds.ends.IsZero() && !last.holds.ends.After(now)
	})
}

// tellInForce tells of the set in force of an instance, unless the supervisor has it. If there
// is none any more, the supervisor has none either, and refuses a login that was permitted.
func (v *supervised) tellInForce(instance string) error {
	holds := v.pipeline.setOf(instance)
	v.mu.Lock()
	has := v.told[instance] == toldSet{holds: holds}
	v.mu.Unlock()
	if holds == nil || has {
		return nil
	}
	return v.tellSet(holds, 0)
}

// errUntold is why logins of one instance are refused. Those of others go on.
var errUntold = errors.New("the supervisor cannot be told of the instance")

// tellSet tells of one set, if a session of this task can have it. The supervisor decides on
// logins that wait again, even if it has the set: what the decision depends on may have
// changed. A supervisor that cannot be told forgets the former set. flags are SetLive or 0. The
// error wraps [errUntold] if the supervisor can be told of other sets.
func (v *supervised) tellSet(holds *capabilitySet, flags uint32) error {
	if !v.serves(holds) || v.pipeline.isOutdated(holds, time.Now()) {
		return nil // sessions of another instance have the same user and region
	}
	record, err := v.recordOf(holds)
	record.Flags |= flags
	ofOne := err != nil
	if err == nil {
		v.mu.Lock()
		key := v.keyOf(holds)
		if v.current[key] != holds.subject.Instance {
			v.forget(key)
		}
		v.current[key] = holds.subject.Instance
		v.keepFormer(holds)
		v.told[holds.subject.Instance] = toldSet{holds: holds} // before bindings to it are reported
		v.mu.Unlock()
		err = v.to.Send(record)
		v.sentInstead(holds.subject.Instance)
		ofOne = errors.Is(err, supervision.ErrNotEncoded)
	}
	if err != nil {
		v.tellForgotten(holds, "")
	}
	if ofOne {
		return fmt.Errorf("%w: %w", errUntold, err)
	}
	return err
}

// tellForgotten tells that a set is no longer in force. If a reason is given, the sessions of
// its instance end.
func (v *supervised) tellForgotten(holds *capabilitySet, reason string) {
	if !v.serves(holds) {
		return
	}
	v.mu.Lock()
	key := v.keyOf(holds)
	replaced := v.current[key] != "" && v.current[key] != holds.subject.Instance
	if !replaced || reason != "" { // sessions end by their key: with those of another instance, whose set is asked for again
		if reason != "" {
			v.endSets(holds.subject.Instance, v.current[key])
		}
		v.forget(key)
	}
	v.mu.Unlock()
	if replaced && reason == "" {
		return
	}
	record := supervision.Forget{Reason: reason}
	record.Principal, record.Region = v.task.parameters(holds)
	if reason != "" {
		record.Flags = supervision.ForgetEnd
	}
	v.send(record)
}

// recordOf returns a set as the supervisor is told of it.
func (v *supervised) recordOf(holds *capabilitySet) (supervision.Set, error) {
	record := supervision.Set{Instance: wire.Shorten(holds.subject.Instance),
		Classes: holds.classes[:min(len(holds.classes), wire.ClassesMax)]}
	record.Principal, record.Region = v.task.parameters(holds)
	if holds.analyzed {
		record.Flags |= supervision.SetAnalyzed
	}
	if v.task.isDecided(holds) {
		record.Flags |= supervision.SetLeaves
	}
	if !holds.expires.IsZero() {
		record.Expires = holds.expires.UnixNano()
	}
	if !holds.ends.IsZero() {
		record.Ends = holds.ends.UnixNano()
	}
	if holds.keyValue != "" {
		password, err := v.pipeline.keyValueStore().Credentials(holds.keyValue)
		if err != nil {
			return supervision.Set{}, err
		}
		record.KVUser, record.KVPassword = holds.keyValue, password
	}
	return record, nil
}
