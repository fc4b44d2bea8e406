// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"maps"
	"slices"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Affected is an instance whose capability set changed.
type Affected struct {
	Instance     Instance
	Gained, Lost []uint32      // readable classes
	Before       *Capabilities // nil: it was not expected before
	After        *Capabilities // nil: it is no longer expected
}

// dirty lists the accesses of one instance to decide again.
type dirty struct {
	all        bool
	others     bool
	reads      map[uint32]bool
	writes     map[uint32]bool
	candidates []*part // whose classes are to be searched
}

func (d *dirty) mark(m *map[uint32]bool, class uint32) {
	if *m == nil {
		*m = make(map[uint32]bool)
	}
	(*m)[class] = true
}

// update is one step from a result to the next.
type update struct {
	old    *Result
	engine *engine
	dirty  map[int]*dirty // by place in instances
	// instances are the currently expected instances. New ones have no capability set
	// yet.
	instances []*Capabilities
	fresh     map[int]bool
	windows   bool // they have moved: the instances of the next ones are analysed as far as the limit allows
	gone      []*Capabilities
	questions []question
	postponed []question
	options   Options
}

// Update returns the result after a change of the catalog, and the affected instances:
// those with an access that depends on a changed fact, and those that may gain one from a
// new fact or class. The accesses are those of a full run on the new state. An access
// that held keeps its conditions as long as they hold. With [Options].Limit, accesses that the
// change gives may be missing until Continue has found them; those that it ends are never left.
// After a change of the bundle,
// Update is a full run. If the bundle changes no policy that the plan reaches, the caller
// can use [Result.Follow] instead.
func (r *Result) Update(ctx context.Context, change *catalog.Change, options Options) (*Result, []Affected, error) {
	if change.Bundle || r.state != change.Before && !r.Current(change.Before) {
		options.Earlier = r
		next, err := Run(ctx, r.plan, change.After, options)
		if err != nil {
			return nil, nil, err
		}
		return next, difference(r.instances, next.instances), nil
	}
	return r.follow(ctx, change, options)
}

// Follow is Update for a change that does not affect the policies and rules that the plan
// reaches, even if it replaces other parts of the bundle: only facts can affect the
// result.
func (r *Result) Follow(ctx context.Context, change *catalog.Change, options Options) (*Result, []Affected, error) {
	if r.state != change.Before && !r.Current(change.Before) {
		return r.Update(ctx, change, options)
	}
	return r.follow(ctx, change, options)
}

func (r *Result) follow(ctx context.Context, change *catalog.Change, options Options) (*Result, []Affected, error) {
	u := r.begin(change.After, options)
	u.expect(change)
	u.broken(changedHashes(change))
	u.classes(change)
	u.enabled(change)
	return u.finish(ctx)
}

// Continue goes on with what earlier steps have left because of [Options].Limit. The state is
// the one that the result belongs to.
func (r *Result) Continue(ctx context.Context, options Options) (*Result, []Affected, error) {
	u := r.begin(r.state, options)
	u.expect(nil)
	return u.finish(ctx)
}

func (r *Result) begin(state *catalog.State, options Options) *update {
	return &update{
		old: r, options: options, instances: r.instances, dirty: make(map[int]*dirty),
		questions: slices.Clone(r.questions),
		engine: &engine{plan: r.plan, state: state, now: options.Now, followed: r.followed,
			targets: &targets{state: state}, evaluators: newEvaluators(state)},
	}
}

func (u *update) at(i int) *dirty {
	d := u.dirty[i]
	if d == nil {
		d = &dirty{}
		u.dirty[i] = d
	}
	return d
}

// broken marks the accesses that depend on changed facts.
func (u *update) broken(hashes []conditionHash) {
	for _, name := range u.old.index.resting(hashes) {
		i, found := u.find(*name)
		if !found || u.fresh[i] {
			continue
		}
		c := u.instances[i]
		for j, class := range c.Reads {
			if c.readsOn.restsOn(j, hashes) {
				d := u.at(i)
				d.mark(&d.reads, class)
			}
		}
		for j, class := range c.Writes {
			if c.writesOn.restsOn(j, hashes) {
				d := u.at(i)
				d.mark(&d.writes, class)
			}
		}
		for j := range c.Others {
			if c.othersOn.restsOn(j, hashes) {
				u.at(i).others = true
			}
		}
	}
}

// classes asks about new classes, and classes that got their first conduit or lost their last.
func (u *update) classes(change *catalog.Change) {
	plan := u.old.plan
	for _, class := range change.Classes {
		info := change.After.Class(class)
		for i := range plan.Sets {
			if plan.Sets[i].Catalog != info.Set {
				continue
			}
			readers, writers := plan.usersOf(plan.Sets[i].Name)
			u.class(class, info, readers, writers)
		}
	}
}

// markClass marks a class for one instance, if it is expected to use it.
func (u *update) markClass(i int, class uint32) {
	task := u.old.plan.task(u.instances[i].Instance.Task)
	if task == nil {
		return
	}
	set := u.engine.state.Class(class).Set
	if u.old.plan.lists(task.Reads, set) {
		d := u.at(i)
		d.mark(&d.reads, class)
	}
	if u.old.plan.lists(task.Writes, set) {
		d := u.at(i)
		d.mark(&d.writes, class)
	}
}

// class asks about one class: of those who hold it if nobody can have access to it at present,
// else of those who may be allowed to read it, and of all who write to the set.
func (u *update) class(class uint32, info catalog.ClassInfo, readers, writers []string) {
	classes := []uint32{class}
	if u.engine.targets.get(class) == nil {
		var tasks []string // those too that nobody expects to use the set
		for _, task := range u.old.plan.Tasks {
			tasks = append(tasks, task.Name)
		}
		u.ask(question{tasks: tasks, all: true, what: askHolders, classes: classes})
		return
	}
	if len(writers) > 0 {
		u.ask(question{tasks: writers, all: true, what: askWrites, classes: classes})
	}
	if len(readers) == 0 {
		return
	}
	all, _ := u.old.sessions.beyond()
	u.ask(question{tasks: readers, only: all, what: askReads, classes: classes})
	for _, reach := range info.Policy.Template().Readers(info.Policy.Values(), u.engine.state) {
		instances, narrowed := u.old.sessions.among(reach)
		u.ask(question{tasks: readers, only: instances, all: !narrowed, what: askReads, classes: classes})
	}
}

// lists reports whether one of the named sets is the catalog's.
func (p *Plan) lists(names []string, set string) bool {
	for _, name := range names {
		if s := p.set(name); s != nil && s.Catalog == set {
			return true
		}
	}
	return false
}

// finish answers questions, and decides the marked accesses again.
func (u *update) finish(ctx context.Context) (*Result, []Affected, error) {
	left := append(u.answer(), u.postponed...)
	order := slices.Sorted(maps.Keys(u.dirty))
	redone := make([]*Capabilities, len(order))
	err := parallel(ctx, len(order), u.options, func(at int) {
		redone[at] = u.engine.again(u.instances[order[at]], u.dirty[order[at]])
	})
	if err != nil {
		return nil, nil, err
	}
	if len(u.gone)+len(u.fresh) == 0 && len(order) > 0 {
		u.instances = slices.Clone(u.instances) // still those of the old result
	}
	next := u.old.with(u.engine.state, u.options.Now, u.instances, left)
	var affected []Affected
	for at, i := range order {
		before, after := next.instances[i], redone[at]
		next.instances[i] = after
		next.next = min(next.next, after.nextInstant(next.followed))
		if u.fresh[i] || before.awaited && !after.awaited {
			before = nil
		}
		next.index.add(before, after)
		if a := compare(before, after); a != nil {
			affected = append(affected, *a)
		}
	}
	if u.windows {
		next.moved()
	}
	for _, c := range u.gone {
		affected = append(affected, *compare(c, nil))
	}
	slices.SortFunc(affected, func(a, b Affected) int { return a.Instance.compare(b.Instance) })
	return next, affected, nil
}

// again returns an instance's capability set with the marked accesses decided again.
func (e *engine) again(c *Capabilities, d *dirty) *Capabilities {
	if d.all {
		out := e.analyze(c.Instance, 1)
		e.alsoReads(out, minus(d.wanted(c), out.Reads))
		return out
	}
	who, err := newSubject(e.plan, e.state, c.Instance)
	if err != nil {
		return &Capabilities{Instance: c.Instance}
	}
	for _, p := range d.candidates {
		for _, class := range e.candidatesOf(who, p.set.Catalog, p.policy) {
			if !contains(c.Reads, class) {
				d.mark(&d.reads, class)
			}
		}
	}
	out := &Capabilities{Instance: c.Instance, Reads: c.Reads, readsOn: c.readsOn, Writes: c.Writes,
		writesOn: c.writesOn, Others: c.Others, othersOn: c.othersOn, begins: c.begins, awaited: c.awaited}
	if len(d.reads) > 0 {
		out.setReads(e.retry(who, read, c.Reads, &c.readsOn, d.reads))
	}
	if len(d.writes) > 0 {
		out.setWrites(e.retry(who, write, c.Writes, &c.writesOn, d.writes))
	}
	if d.others {
		out.Others, out.othersOn = nil, footprints{}
		e.tryOthers(who, out)
	}
	if out.begins <= e.followed {
		out.begins = 0
	}
	out.begins = who.next.or(out.begins)
	return out
}

func (e *engine) retry(who *subject, what policy.Operation, classes []uint32, on *footprints,
	again map[uint32]bool) map[uint32]footprint {
	holds := make(map[uint32]footprint, len(classes))
	for i, class := range classes {
		if !again[class] {
			holds[class] = on.of(i)
		}
	}
	for class := range again {
		if f, ok := e.try(who, what, class); ok {
			holds[class] = f
		}
	}
	return holds
}

// compare returns nil if both sets give the same accesses.
func compare(before, after *Capabilities) *Affected {
	a := &Affected{Before: before, After: after}
	var old, now Capabilities
	if before != nil {
		a.Instance, old = before.Instance, *before
	}
	if after != nil {
		a.Instance, now = after.Instance, *after
	}
	a.Gained, a.Lost = minus(now.Reads, old.Reads), minus(old.Reads, now.Reads)
	if before != nil && after != nil && len(a.Gained)+len(a.Lost) == 0 &&
		slices.Equal(old.Writes, now.Writes) && slices.Equal(old.Others, now.Others) {
		return nil
	}
	return a
}

// minus returns the elements of the ascending list a that are not in b.
func minus(a, b []uint32) []uint32 {
	var left []uint32
	for _, class := range a {
		for len(b) > 0 && b[0] < class {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != class {
			left = append(left, class)
		}
	}
	return left
}

// difference compares two lists of instances, both in order.
func difference(before, after []*Capabilities) []Affected {
	var affected []Affected
	for len(before)+len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		default:
			order = before[0].Instance.compare(after[0].Instance)
		}
		var old, now *Capabilities
		if order <= 0 {
			old, before = before[0], before[1:]
		}
		if order >= 0 {
			now, after = after[0], after[1:]
		}
		if a := compare(old, now); a != nil {
			affected = append(affected, *a)
		}
	}
	return affected
}
