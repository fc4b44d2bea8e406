// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"sync"
	"time"

	"shai.dev/monitor/internal/catalog"
)

// Result is the analysis of one plan on one state. It is immutable and safe for
// concurrent use; Update and Expire make the next one.
type Result struct {
	plan         *Plan
	state        *catalog.State
	BundleHash   string
	FactsVersion uint64
	Analyzed     time.Time // the clock of the run

	instances []*Capabilities // by task, then arguments
	index     *conditionIndex
	sessions  *sessionIndex
	sense     *lazily    // what the plan depends on
	questions []question // not answered yet
	// followed is the instant (Unix nanoseconds) up to which accesses that time gives and takes
	// have been looked for, and next one before which there are no further ones.
	followed, next int64
	windows        int // how often the windows have moved since the indexes were made
}

// keptWindows is how many windows the indexes keep the instances of, which have ended.
const keptWindows = 8

// moved notes that the windows have moved. With each of them, all instances of a task may be others, and
// the indexes, which keep what is no longer expected, would grow for ever.
func (r *Result) moved() {
	if r.windows++; r.windows == keptWindows {
		r.windows, r.index = 0, newConditionIndex(r.instances)
		r.sessions = newSessionIndex(r.plan, r.state, r.instances)
	}
}

// lazily is a sensitivity that is made at its first use.
type lazily struct {
	once  sync.Once
	sense *sensitivity
}

func newResult(plan *Plan, state *catalog.State, now time.Time, instances []*Capabilities) *Result {
	r := &Result{
		plan: plan, state: state, BundleHash: state.BundleHash(), FactsVersion: state.FactsVersion(),
		Analyzed: now, instances: instances, index: newConditionIndex(instances),
		sessions: newSessionIndex(plan, state, instances), sense: &lazily{}, followed: now.UnixNano(),
	}
	r.next = r.nextInstant()
	return r
}

// with returns the next result, for a state on which the plan's policies are the same.
func (r *Result) with(state *catalog.State, now time.Time, instances []*Capabilities, left []question) *Result {
	next := *r
	next.state, next.BundleHash, next.FactsVersion = state, state.BundleHash(), state.FactsVersion()
	next.Analyzed, next.instances, next.questions = now, instances, left
	return &next
}

func (r *Result) sensitivity(state *catalog.State) *sensitivity {
	r.sense.once.Do(func() { r.sense.sense = newSensitivity(r.plan, state) })
	return r.sense.sense
}

// Pending reports whether accesses may be missing that Continue finds.
func (r *Result) Pending() bool { return len(r.questions) > 0 }

// Instances lists all analysed instances, by task, then arguments. Callers must not alter
// the list.
func (r *Result) Instances() []*Capabilities { return r.instances }

// Instance returns the capability set of one instance; ok is false when it was not
// analysed.
func (r *Result) Instance(instance Instance) (*Capabilities, bool) {
	at, found := r.find(instance)
	if !found {
		return nil, false
	}
	return r.instances[at], true
}

func (r *Result) find(instance Instance) (int, bool) {
	return findIn(r.instances, instance)
}

func findIn(all []*Capabilities, instance Instance) (int, bool) {
	return slices.BinarySearchFunc(all, instance,
		func(c *Capabilities, i Instance) int { return c.Instance.compare(i) })
}

// Current reports whether the result still belongs to the state. If not, it must not be
// used for new sessions.
func (r *Result) Current(state *catalog.State) bool {
	return r.BundleHash == state.BundleHash() && r.FactsVersion == state.FactsVersion()
}

// Covers reports whether a full run of the plan on the state would have the same
// instances: the result still belongs to the state, and contains every expected instance
// and no other. A nil result covers nothing.
func (r *Result) Covers(plan *Plan, state *catalog.State) bool {
	return r != nil && r.Current(state) && slices.EqualFunc(plan.Instances(state, r.Analyzed), r.instances,
		func(i Instance, c *Capabilities) bool {
			return i.compare(c.Instance) == 0
		})
}

// On returns the result for a copy of its plan, whose owner may change the original.
func (r *Result) On(plan *Plan) *Result {
	copied := *r
	copied.plan = plan
	return &copied
}

// NextExpiry returns an instant before which neither an access expires nor time gives one. Call
// Expire then. ok is false if there is none.
func (r *Result) NextExpiry() (at time.Time, ok bool) { return instant(r.next), r.next != never }

func (r *Result) nextInstant() int64 {
	next := int64(never)
	for _, c := range r.instances {
		next = min(next, c.nextInstant(r.followed))
	}
	if at, ok := r.plan.NextWindow(r.Analyzed); ok {
		next = min(next, at.UnixNano())
	}
	return next
}

// nextInstant returns the first instant at which an access of the instance expires, or at which
// it may gain one for which nobody has looked yet.
func (c *Capabilities) nextInstant(followed int64) int64 {
	next := c.nextExpiry()
	if c.begins > followed {
		next = min(next, c.begins)
	}
	return next
}

// conditionIndex finds the instances whose accesses depend on a condition. Two arrays
// sorted by hash hold the results of a full run; a map holds what updates add. Entries
// that no longer hold are kept: each costs a needless check of one instance.
type conditionIndex struct {
	hashes    []conditionHash
	instances []*instanceName

	mu    sync.RWMutex
	added map[conditionHash][]*instanceName
}

// instanceName is kept after the capability sets of an instance are dropped.
type instanceName = Instance

func newConditionIndex(all []*Capabilities) *conditionIndex {
	type entry struct {
		hash conditionHash
		of   uint32
	}
	count := 0
	for _, c := range all {
		count += len(c.readsOn.hashes) + len(c.writesOn.hashes) + len(c.othersOn.hashes)
	}
	entries := make([]entry, 0, count)
	for i, c := range all {
		for _, f := range []*footprints{&c.readsOn, &c.writesOn, &c.othersOn} {
			for _, hash := range f.hashes {
				entries = append(entries, entry{hash, uint32(i)})
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return int(a.of) - int(b.of)
	})
	entries = slices.Compact(entries)
	x := &conditionIndex{added: make(map[conditionHash][]*instanceName)}
	x.hashes = make([]conditionHash, len(entries))
	x.instances = make([]*instanceName, len(entries))
	for i, e := range entries {
		x.hashes[i], x.instances[i] = e.hash, &all[e.of].Instance
	}
	return x
}

// resting lists the instances with an access that may depend on one of the hashes.
func (x *conditionIndex) resting(hashes []conditionHash) []*instanceName {
	var found []*instanceName
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, hash := range hashes {
		at, _ := slices.BinarySearch(x.hashes, hash)
		for ; at < len(x.hashes) && x.hashes[at] == hash; at++ {
			found = append(found, x.instances[at])
		}
		found = append(found, x.added[hash]...)
	}
	slices.SortFunc(found, func(a, b *instanceName) int { return a.compare(*b) })
	return slices.CompactFunc(found, func(a, b *instanceName) bool { return a.compare(*b) == 0 })
}

// add lists an instance whose accesses changed under its conditions. It is listed under those that
// it had before; before is nil if it was not listed.
func (x *conditionIndex) add(before, c *Capabilities) {
	var listed []conditionHash
	if before != nil {
		listed = slices.Concat(before.readsOn.hashes, before.writesOn.hashes, before.othersOn.hashes)
		slices.Sort(listed)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range []*footprints{&c.readsOn, &c.writesOn, &c.othersOn} {
		for _, hash := range f.hashes {
			if _, isListed := slices.BinarySearch(listed, hash); isListed {
				continue
			}
			known := before != nil && slices.ContainsFunc(x.added[hash],
				func(i *instanceName) bool { return i.compare(c.Instance) == 0 })
			at, found := slices.BinarySearch(x.hashes, hash)
			for ; found && !known && before != nil && at < len(x.hashes) && x.hashes[at] == hash; at++ {
				known = x.instances[at].compare(c.Instance) == 0
			}
			if !known {
				x.added[hash] = append(x.added[hash], &c.Instance)
			}
		}
	}
}
