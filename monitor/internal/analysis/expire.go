// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"slices"

	"shai.dev/monitor/policy"
)

// Expire returns the result at a later time, when accesses have expired, or time may have given
// some. The accesses are those of a full run at that time, but for what [Options].Limit leaves.
func (r *Result) Expire(ctx context.Context, options Options) (*Result, []Affected, error) {
	u := r.begin(r.state, options)
	u.expect(nil)
	now := options.Now.UnixNano()
	u.engine.followed = now
	var begun []*instanceName
	for i, c := range u.instances {
		if u.fresh[i] {
			continue
		}
		u.expired(i, c, now)
		if r.followed < c.begins && c.begins <= now {
			begun = append(begun, &c.Instance)
		}
	}
	u.begun(begun)
	next, affected, err := u.finish(ctx)
	if err == nil {
		next.followed = now
		next.next = next.nextInstant()
	}
	return next, affected, err
}

// expired marks the accesses of an instance that have expired.
func (u *update) expired(i int, c *Capabilities, now int64) {
	for _, e := range c.readsOn.expires {
		if e.until <= now {
			d := u.at(i)
			d.mark(&d.reads, c.Reads[e.access])
		}
	}
	for _, e := range c.writesOn.expires {
		if e.until <= now {
			d := u.at(i)
			d.mark(&d.writes, c.Writes[e.access])
		}
	}
	for _, e := range c.othersOn.expires {
		if e.until <= now {
			u.at(i).others = true
		}
	}
}

// begun asks about everything that time may have given instances: what a policy with a clock
// decides on.
func (u *update) begun(instances []*instanceName) {
	if len(instances) == 0 {
		return
	}
	sense := u.old.sensitivity(u.engine.state)
	for _, task := range sense.tasks {
		if ticks(task.uses) {
			u.ask(question{tasks: []string{task.name}, only: instances, what: askEverything})
		}
	}
	for i := range sense.parts {
		p := &sense.parts[i]
		if !ticks(p.uses) && !compares(p.uses) {
			continue
		}
		u.ask(question{tasks: slices.Concat(p.readers, p.writers), only: instances, what: askOthers})
		u.ask(question{tasks: p.readers, only: instances, what: askCandidates, part: p})
		u.ask(question{tasks: p.writers, only: instances, what: askWrites,
			classes: u.engine.classesOfPolicy(p.set.Catalog, p.policy)})
	}
}

// ticks reports whether a policy asks for the time.
func ticks(uses policy.Dependencies) bool {
	return uses.Read.Clock || uses.Update.Clock || uses.Exits.Clock
}
