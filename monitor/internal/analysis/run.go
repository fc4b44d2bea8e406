// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Options of a run.
type Options struct {
	Now time.Time // the clock; required
	// Parallel is the number of instances that are analysed at the same time; 0 means one
	// for each CPU. The result does not depend on it.
	Parallel int
	// Progress, when set, is called from one goroutine at a time with the number
	// of instances that are done.
	Progress Progress
	// Open requests the accesses that are not denied: those that only policies in modes
	// Audit or Warn forbid count as allowed. Such a result is for comparison only, not
	// for capability sets.
	Open bool
	// Limit is how many accesses [Result.Update] and its like decide on at most to find what a
	// change gives, roughly; 0 means all. See [Result.Pending].
	Limit int
	// Earlier, when set, is a result of the same plan. Accesses that it holds and that no
	// expectation names are decided, too: see [Result.Extend].
	Earlier *Result
	// search makes the run search for candidates even if there are few classes, for
	// tests.
	search bool
	// cohort and wide, if set, stand for cohortSize and wideInstance even if there are few instances,
	// for tests.
	cohort, wide int
}

// Progress is called with the progress of a run.
type Progress func(done, total uint64)

// engine is one run over one state.
type engine struct {
	plan  *Plan
	state *catalog.State
	now   time.Time
	// followed is the instant (Unix nanoseconds) up to which accesses that time gives are asked for.
	followed int64
	targets  *targets
	waive    func(*policy.Policy) bool // nil: nothing
	search   bool
	// byPolicy lists the classes of each set and policy, made at first use.
	byPolicy   sync.Map // [2]string to func() []uint32
	evaluators *evaluators
}

func newEngine(plan *Plan, state *catalog.State, now time.Time) *engine {
	return &engine{plan: plan, state: state, now: now, targets: newTargets(state), evaluators: newEvaluators(state)}
}

// prepared returns an engine for a run over all classes.
func prepared(plan *Plan, state *catalog.State, options Options) *engine {
	e := newEngine(plan, state, options.Now)
	e.search = options.search
	if options.Open {
		e.waive = state.Waive()
	}
	for _, set := range plan.Sets {
		e.targets.prepare(set.Catalog)
	}
	return e
}

// Run analyses a plan without an earlier result. It stops early when ctx ends.
func Run(ctx context.Context, plan *Plan, state *catalog.State, options Options) (*Result, error) {
	return runInstances(ctx, prepared(plan, state, options), plan.Instances(state, options.Now), options)
}

// RunActive analyses the given instances, and those of tasks without parameters. If the
// earlier result is of the same state, it keeps what that result says about the others.
// Otherwise it drops the others, and their accesses are decided when they happen. What the earlier
// result has left to Continue is left still. earlier may be nil.
func RunActive(ctx context.Context, plan *Plan, state *catalog.State, active []Instance, earlier *Result,
	options Options) (*Result, error) {
	some := slices.Clone(active)
	for i := range plan.Tasks {
		if len(plan.Tasks[i].Parameters) == 0 {
			some = append(some, Instance{Task: plan.Tasks[i].Name})
		}
	}
	slices.SortFunc(some, Instance.compare)
	some = slices.CompactFunc(some, func(a, b Instance) bool { return a.compare(b) == 0 })
	result, err := runInstances(ctx, prepared(plan, state, options), some, options)
	if err != nil || earlier == nil || earlier.plan != plan || !earlier.Current(state) {
		return result, err
	}
	if at, ok := earlier.NextExpiry(); ok && !at.After(options.Now) {
		if earlier, _, err = earlier.Expire(ctx, options); err != nil {
			return nil, err
		}
	}
	all := slices.Clone(result.instances)
	for _, c := range earlier.instances {
		if _, again := result.find(c.Instance); !again {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *Capabilities) int { return a.Instance.compare(b.Instance) })
	result = newResult(plan, state, options.Now, all)
	result.questions = slices.Clone(earlier.questions)
	return result, nil
}

func runInstances(ctx context.Context, e *engine, instances []Instance, options Options) (*Result, error) {
	all := make([]*Capabilities, len(instances))
	analyze := func() error {
		if len(instances) < fewInstances && options.cohort == 0 {
			return parallel(ctx, len(instances), options, func(i int) {
				all[i] = e.analyze(instances[i], workers(options))
			})
		}
		return e.analyzeMany(ctx, instances, all, options)
	}
	err := analyze()
	if err == nil && options.Earlier != nil {
		err = parallel(ctx, len(all), Options{Parallel: options.Parallel}, func(i int) {
			e.keep(all[i], options.Earlier)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("analyse pipeline %s: %w", e.plan.Pipeline, err)
	}
	return newResult(e.plan, e.state, options.Now, all), nil
}

// analyzeMany analyses instances cohort by cohort.
func (e *engine) analyzeMany(ctx context.Context, instances []Instance, all []*Capabilities, options Options) error {
	report, size := options.Progress, cmp.Or(options.cohort, cohortSize)
	for start := 0; start < len(instances); start += size {
		end := min(start+size, len(instances))
		if report != nil {
			options.Progress = func(done, _ uint64) { report(uint64(start)+done, uint64(len(instances))) } //nolint:gosec // never negative
		}
		if err := e.analyzeCohort(ctx, instances[start:end], all[start:end], options); err != nil {
			return err
		}
	}
	return nil
}

// RunInstance analyses one instance, expected or not.
func RunInstance(plan *Plan, state *catalog.State, instance Instance, now time.Time) (*Capabilities, error) {
	if _, err := newSubject(plan, state, instance); err != nil {
		return nil, err
	}
	e := newEngine(plan, state, now)
	return e.analyze(instance, 1), nil
}

// RunSingles decides only an instance's expected accesses to conduits without a class,
// which a session needs if its instance was not foreseen.
func RunSingles(plan *Plan, state *catalog.State, instance Instance, now time.Time) ([]Other, error) {
	who, err := newSubject(plan, state, instance)
	if err != nil {
		return nil, err
	}
	var out Capabilities
	newEngine(plan, state, now).tryOthers(who, &out)
	return out.Others, nil
}

// fewInstances is the number of instances up to which several goroutines share one: a single
// indexer over eighty thousand classes should use all CPUs, but of forty thousand users each
// has few candidates.
const fewInstances = 64

func workers(options Options) int {
	if options.Parallel > 0 {
		return options.Parallel
	}
	return runtime.GOMAXPROCS(0)
}

// parallel calls work for 0..count-1 on several goroutines.
func parallel(ctx context.Context, count int, options Options, work func(int)) error {
	var next, done atomic.Int64
	var reporting sync.Mutex
	var group sync.WaitGroup
	for range min(workers(options), count) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				work(i)
				if finished := done.Add(1); options.Progress != nil && (finished%256 == 0 || int(finished) == count) {
					reporting.Lock()
					options.Progress(uint64(finished), uint64(count)) //nolint:gosec // never negative
					reporting.Unlock()
				}
			}
		})
	}
	group.Wait()
	return ctx.Err()
}

// analyze decides all expected accesses of an instance.
func (e *engine) analyze(instance Instance, workers int) *Capabilities {
	out := &Capabilities{Instance: instance}
	who, err := newSubject(e.plan, e.state, instance)
	if err != nil {
		return out // its taint cannot be built: no access, and the report warns of it
	}
	out.Reads, out.readsOn = flatten(e.tryClasses(who, read, e.readable(who, nil, nil), workers))
	out.Writes, out.writesOn = flatten(e.writable(who, workers))
	e.tryOthers(who, out)
	out.begins = who.next.or(0)
	return out
}

// readable lists, in ascending order, the classes that the instance may be able to read: those that
// were found before, and those of the policies that were not searched then.
func (e *engine) readable(who *subject, found []uint32, searched map[setPolicy]bool) []uint32 {
	for _, name := range who.task.Reads {
		if set := e.plan.set(name); set != nil {
			found = append(found, e.candidates(who, set, searched)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// writable lists the classes that the instance may write.
func (e *engine) writable(who *subject, workers int) holds {
	var found holds
	for _, name := range who.task.Writes {
		if set := e.plan.set(name); set != nil {
			found = append(found, e.tryClasses(who, write, e.state.ClassesOf(set.Catalog), workers)...)
		}
	}
	return found
}

// candidates lists the classes of a set that the instance may be able to read. It finds
// them through the facts if the policy allows this; otherwise it returns all of them. It leaves out
// the policies that were searched before.
func (e *engine) candidates(who *subject, set *Set, searched map[setPolicy]bool) []uint32 {
	var classes []uint32
	for _, name := range e.state.Templates(set.Catalog) {
		if searched[setPolicy{set.Name, name}] {
			continue
		}
		classes = append(classes, e.candidatesOf(who, set.Catalog, name)...)
	}
	return classes
}

// fewClasses is the number of classes up to which deciding each is cheaper than searching
// the facts for the classes to decide: a user has ten thousand friends of friends, even
// if none of them shares anything.
const fewClasses = 16

// classesOfPolicy returns the classes of a set whose policy has this name.
func (e *engine) classesOfPolicy(set, name string) []uint32 {
	list, _ := e.byPolicy.LoadOrStore([2]string{set, name}, sync.OnceValue(func() []uint32 {
		return e.state.ClassesOfPolicy(set, name)
	}))
	return list.(func() []uint32)()
}

func (e *engine) candidatesOf(who *subject, set, name string) []uint32 {
	template := e.state.Template(name)
	if template == nil {
		return nil
	}
	if e.waive != nil {
		return e.classesOfPolicy(set, name) // the taint does not tell which can be read
	}
	if len(template.Parameters()) == 0 {
		return e.state.ClassesWith(set, name, []string{})
	}
	if e.state.CountOfPolicy(set, name) <= fewClasses && !e.search {
		return e.classesOfPolicy(set, name)
	}
	bindings, complete, next := template.Candidates(who.taint, e.state,
		policy.Environment{Session: who.session, Now: e.now})
	who.next.note(next)
	if !complete {
		return e.classesOfPolicy(set, name)
	}
	return e.state.ClassesWith(set, name, bindings...)
}

// hold is a class to which an instance has access, and what this rests on.
type hold struct {
	class uint32
	on    footprint
}

type holds []hold

// tryClasses decides one access for each class and returns those that hold, on several
// goroutines if there are many classes.
func (e *engine) tryClasses(who *subject, what policy.Operation, classes []uint32, workers int) holds {
	// The work of a goroutine must be worth its start.
	const share = 512
	if workers = min(workers, len(classes)/share); workers < 2 {
		return e.tryEach(who, what, classes, make(holds, 0, len(classes)))
	}
	parts := make([]holds, (len(classes)+share-1)/share)
	_ = parallel(context.Background(), len(parts), Options{Parallel: workers}, func(part int) {
		parts[part] = e.tryEach(who, what, classes[part*share:min((part+1)*share, len(classes))], nil)
	})
	return slices.Concat(parts...)
}

func (e *engine) tryEach(who *subject, what policy.Operation, classes []uint32, found holds) holds {
	for _, class := range classes {
		if f, ok := e.try(who, what, class); ok {
			found = append(found, hold{class, f})
		}
	}
	return found
}

func (e *engine) try(who *subject, what policy.Operation, class uint32) (footprint, bool) {
	to := e.targets.get(class)
	if to == nil {
		return footprint{}, false
	}
	memory := conditions.Get().(*[]policy.Condition)
	defer conditions.Put(memory)
	if what == read && e.waive == nil {
		if found, ok := e.evaluators.cover(who, to, (*memory)[:0]); ok {
			*memory = found
			return footprintOf(found, to.name), true
		}
	}
	decision := decideIn(who, what, to, e.state,
		policy.Environment{Now: e.now, Waive: e.waive, Conditions: *memory})
	if !validated(decision, e.now) {
		e.follow(who, what, to, decision)
		return footprint{}, false
	}
	if len(decision.Conditions) > 0 {
		*memory = decision.Conditions
	}
	return footprintOf(decision.Conditions, to.name), true
}

// conditions is memory for those of one decision.
var conditions = sync.Pool{New: func() any { return new([]policy.Condition) }}

// setReads sorts the classes found and stores them.
func (c *Capabilities) setReads(found map[uint32]footprint) {
	c.Reads, c.readsOn = flatten(holdsOf(found))
}

func (c *Capabilities) setWrites(found map[uint32]footprint) {
	c.Writes, c.writesOn = flatten(holdsOf(found))
}

func holdsOf(found map[uint32]footprint) holds {
	list := make(holds, 0, len(found))
	for class, on := range found {
		list = append(list, hold{class, on})
	}
	return list
}

// flatten alters the list. A class that is in it twice, because a task lists its set twice,
// rests on the same both times.
func flatten(found holds) ([]uint32, footprints) {
	slices.SortStableFunc(found, func(a, b hold) int { return cmp.Compare(a.class, b.class) })
	found = slices.CompactFunc(found, func(a, b hold) bool { return a.class == b.class })
	hashes := 0
	for i := range found {
		hashes += len(found[i].on.hashes)
	}
	classes := make([]uint32, len(found))
	on := footprints{ends: make([]uint32, 0, len(found)), hashes: make([]conditionHash, 0, hashes)}
	for i := range found {
		classes[i] = found[i].class
		on.add(found[i].on)
	}
	return classes, on
}
