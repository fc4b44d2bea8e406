// SPDX-License-Identifier: BSD-2-Clause

package offline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit/records"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// Learnt is a Task as a run has used it.
type Learnt struct {
	Task manifest.Task `json:"task"`
	// Reads and Writes are conduits of the pipeline that the former manifest does not list.
	Reads  []string `json:"reads"`
	Writes []string `json:"writes"`
	// Taint says that the task has another one than before, with which all accesses are allowed.
	Taint bool `json:"taint"`
	// Refused are accesses that the policies do not allow under the task's taint.
	Refused []RefusedAccess `json:"refused"`
	// Uncovered are names that no conduit of the pipeline has.
	Uncovered []string `json:"uncovered"`
}

// RefusedAccess is an access with the reason why it is denied.
type RefusedAccess struct {
	Instance string `json:"instance"`
	Access   string `json:"access"` // read or write
	Conduit  string `json:"conduit"`
	Reason   string `json:"reason"`
}

// observation is one access that a run has made, or tried.
type observation struct {
	instance analysis.Instance
	what     policy.Operation
	conduit  policy.Conduit
	set      string
}

// Learn makes a Task of what the audit log says of its runs. Declared reads and writes stay:
// accesses that were foreseen are not recorded, so that nothing tells those that were not used.
// The taint stays if it allows what was done; otherwise it becomes the policy of a conduit that
// was read, if everything is allowed with it.
func (p *Project) Learn(pipeline, task string, log []records.Record, now time.Time) (Learnt, error) {
	plan, err := p.Pipeline(pipeline)
	if err != nil {
		return Learnt{}, err
	}
	at := slices.IndexFunc(plan.Tasks, func(t analysis.Task) bool { return t.Name == task })
	if at < 0 {
		return Learnt{}, fmt.Errorf("pipeline %s of the manifests has no task %q", pipeline, task)
	}
	out := Learnt{Task: *p.tasks[task], Reads: []string{}, Writes: []string{}, Refused: []RefusedAccess{},
		Uncovered: []string{}}
	seen, uncovered := p.observed(plan, task, log)
	out.Uncovered = append(out.Uncovered, uncovered...)
	for _, one := range seen {
		if one.what == policy.Write {
			out.Writes = append(out.Writes, one.set)
		} else {
			out.Reads = append(out.Reads, one.set)
		}
	}
	out.Reads, out.Task.Spec.Reads = added(plan, out.Task.Spec.Reads, out.Reads)
	out.Writes, out.Task.Spec.Writes = added(plan, out.Task.Spec.Writes, out.Writes)
	out.Refused = append(out.Refused, p.refused(plan, seen, now)...)
	if len(out.Refused) > 0 {
		if taint, found := p.sufficient(plan, at, seen, now); found {
			out.Taint, out.Refused = true, []RefusedAccess{}
			out.Task.Spec.Taint = &manifest.PolicyReference{Name: taint.Policy, Arguments: taint.Arguments}
		}
	}
	return out, nil
}

// added returns which of the used conduits are not declared, and both together, in the order
// of the pipeline.
func added(plan *analysis.Plan, declared, used []string) (more, all []string) {
	more = []string{}
	all = slices.Clone(declared)
	for _, set := range plan.Sets {
		if slices.Contains(used, set.Name) && !slices.Contains(declared, set.Name) {
			more, all = append(more, set.Name), append(all, set.Name)
		}
	}
	return more, all
}

// observed returns each access of the log to a conduit of the pipeline once, and the names that
// it has no conduit for.
func (p *Project) observed(plan *analysis.Plan, task string, log []records.Record) (seen []observation,
	uncovered []string) {
	type key struct{ instance, operation, conduit string }
	known := map[key]bool{}
	missing := map[string]bool{}
	for _, record := range log {
		which := key{record.Instance, record.Operation, record.Conduit}
		if record.Pipeline != plan.Pipeline || record.Task != task || known[which] ||
			record.Kind != records.Decision && record.Kind != records.Denial {
			continue
		}
		known[which] = true
		what := policy.Read
		switch record.Operation {
		case policy.Read.String():
		case policy.Write.String():
			what = policy.Write
		default:
			continue // data leave through connections, which a Task does not list
		}
		if isConnection(plan, record.Conduit) {
			continue // what comes from the connected party restricts nothing
		}
		conduit, set, covered := p.used(plan, record.Conduit)
		instance, err := analysis.ParseInstance(cmp.Or(record.Instance, task))
		if !covered || err != nil {
			missing[record.Conduit] = true
			continue
		}
		seen = append(seen, observation{instance, what, conduit, set})
	}
	return seen, slices.Sorted(maps.Keys(missing))
}

func isConnection(plan *analysis.Plan, name string) bool {
	return slices.ContainsFunc(plan.Sets, func(s analysis.Set) bool {
		return s.Name == name && s.Kind == policy.ConnectionConduit
	})
}

// used finds a conduit by its name in a record: the path of a file, the key of a tuple, or
// pipeline/conduit/slot.
func (p *Project) used(plan *analysis.Plan, name string) (conduit policy.Conduit, set string, covered bool) {
	for _, one := range plan.Sets {
		if one.Policy == nil || name != one.Catalog && !strings.HasPrefix(name, one.Catalog+"/") {
			continue
		}
		bound, err := p.state.Bind(*one.Policy)
		return policy.Conduit{Name: name, Kind: one.Kind, Internal: true, Policy: bound}, one.Name, err == nil
	}
	if conduit, covered = p.state.ConduitNamed(name); !covered {
		return conduit, "", false
	}
	set, covered = strings.CutPrefix(p.state.SetOf(conduit), plan.Pipeline+"/")
	return conduit, set, covered
}

// refused decides on the accesses under the plan's taint.
func (p *Project) refused(plan *analysis.Plan, seen []observation, now time.Time) []RefusedAccess {
	var list []RefusedAccess
	for _, one := range seen {
		access := RefusedAccess{Instance: one.instance.Name(), Access: one.what.String(), Conduit: one.conduit.Name}
		who, err := analysis.Predict(plan, p.state, one.instance)
		if err != nil {
			access.Reason = err.Error()
			list = append(list, access)
			continue
		}
		found := decision.Decide(decision.Flow{What: one.what, Conduit: one.conduit,
			Who: decision.Subject{Task: one.instance.Task, Instance: access.Instance, Taint: who.Taint,
				Session: who.Session}}, p.state, now)
		if !found.Allowed {
			access.Reason = found.Reason
			list = append(list, access)
		}
	}
	return list
}

// sufficient looks for a taint with which all accesses are allowed, among the policies of what
// was read. A value that is a parameter's of the instance becomes the parameter.
func (p *Project) sufficient(plan *analysis.Plan, at int, seen []observation, now time.Time) (catalog.Reference, bool) {
	for _, one := range seen {
		if one.what != policy.Read {
			continue
		}
		candidate := catalog.Reference{Policy: one.conduit.Policy.Template().File(), Arguments: map[string]string{}}
		for parameter, value := range one.conduit.Policy.Arguments() {
			if i := slices.Index(one.instance.Arguments, value); i >= 0 && i < len(plan.Tasks[at].Parameters) {
				value = "{" + plan.Tasks[at].Parameters[i] + "}"
			}
			candidate.Arguments[parameter] = value
		}
		trial := *plan
		trial.Tasks = slices.Clone(plan.Tasks)
		trial.Tasks[at].Taint = candidate
		if len(p.refused(&trial, seen, now)) == 0 {
			return candidate, true
		}
	}
	return catalog.Reference{}, false
}
