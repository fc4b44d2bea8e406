// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// Pipeline counts what happens in one pipeline. It is safe for concurrent use. After Close it
// counts what nobody sees.
type Pipeline struct {
	metrics *Metrics
	scope   *scope
	close   sync.Once

	policies []Policy // for TryOut
}

// Names are those in a pipeline's manifests that labels have values for.
type Names struct {
	Tasks, Conduits []string
	Policies        []Policy // of conduits and taints
}

// Policy is a policy that a pipeline's manifests refer to.
type Policy struct {
	Name    string
	Relaxed string // the mode in which it denies nothing, Audit or Warn; empty if it is enforced
}

// Pipeline returns what counts for a pipeline with these names. The caller calls Close when the
// pipeline is removed. Counters of rare events begin at 0 here, since the first event would
// otherwise not be seen as an increase; and which names have series of their own depends on the
// manifests alone.
func (m *Metrics) Pipeline(name string, of Names) *Pipeline {
	p := &Pipeline{metrics: m, policies: of.Policies}
	p.scope = m.scopes.enter(p, name, of)
	for _, result := range analysisResults {
		m.analyses.begin(p.scope, values{result})
	}
	for _, task := range of.Tasks {
		m.restarts.begin(p.scope, values{p.task(task)})
		m.discardedWorker.begin(p.scope, values{p.task(task)})
	}
	p.expect(of)
	for _, conduit := range of.Conduits {
		p.conduit(conduit)
	}
	return p
}

// expect begins what counts the accesses that policies forbid.
func (p *Pipeline) expect(of Names) {
	var denials, wouldDeny []values
	for _, policy := range of.Policies {
		name := p.policy(policy.Name)
		for _, reason := range []Reason{ByPolicy, ByTaint} {
			if policy.Relaxed != "" {
				wouldDeny = append(wouldDeny, values{name, policy.Relaxed, string(reason)})
				continue
			}
			for _, task := range of.Tasks {
				denials = append(denials, values{p.task(task), name, string(reason)})
			}
		}
	}
	p.metrics.denials.begin(p.scope, denials...)
	p.metrics.wouldDeny.begin(p.scope, wouldDeny...)
}

// TryOut begins what counts the accesses that enforced policies forbid in mode audit.
func (p *Pipeline) TryOut() {
	var wouldDeny []values
	for _, policy := range p.policies {
		for _, reason := range []Reason{ByPolicy, ByTaint} {
			if policy.Relaxed == "" {
				wouldDeny = append(wouldDeny, values{p.policy(policy.Name), InAudit, string(reason)})
			}
		}
	}
	p.metrics.wouldDeny.begin(p.scope, wouldDeny...)
}

// Close removes the pipeline's series, unless another pipeline of its name has taken its place.
func (p *Pipeline) Close() {
	p.close.Do(func() { p.metrics.scopes.leave(p, p.metrics.counters) })
}

func (p *Pipeline) task(name string) string { return p.scope.label(&p.metrics.scopes, taskLabel, name) }
func (p *Pipeline) conduit(name string) string {
	return p.scope.label(&p.metrics.scopes, conduitLabel, name)
}
func (p *Pipeline) policy(name string) string {
	return p.scope.label(&p.metrics.scopes, policyLabel, name)
}

func (p *Pipeline) add(c *Counter, number uint64, of ...string) *series {
	var key values
	copy(key[:], of)
	one := c.in(p.scope, key)
	one.add(number)
	return one
}

// SessionBegan and SessionOver count the sessions that are open.
func (p *Pipeline) SessionBegan() { p.scope.active.Add(1) }

// SessionOver is the end of SessionBegan.
func (p *Pipeline) SessionOver() { p.scope.active.Add(-1) }

// SessionEnded counts a session of a user.
func (p *Pipeline) SessionEnded(mode string) { p.add(p.metrics.sessions, 1, mode) }

// Results of bindings.
const (
	Analyzed     = "analyzed"
	Mispredicted = "mispredicted"
	Refused      = "refused"
)

// Bound counts an attempt to bind a session to a user. A result that is none of those counts as
// [Refused].
func (p *Pipeline) Bound(result string) {
	if result != Analyzed && result != Mispredicted {
		result = Refused
	}
	p.add(p.metrics.bindings, 1, result)
}

// Intercepted counts one involvement of the monitor that took so long. What it returns is told
// of its audit record.
func (p *Pipeline) Intercepted(kind Kind, took time.Duration) *Interception {
	i := p.Begin(kind)
	i.end(took)
	return i
}

// Waited counts an involvement of the monitor of which nobody measures how long it takes.
func (p *Pipeline) Waited(kind Kind) { p.add(p.metrics.interceptions, 1, string(kind)) }

// Begin counts an involvement of the monitor, which ends with its End. It is counted before the
// task is answered: who is answered finds it counted.
func (p *Pipeline) Begin(kind Kind) *Interception {
	p.Waited(kind)
	return &Interception{timings: p.metrics.latency.of[kind], begun: time.Now()}
}

// Decided counts a decision about a conduit. conduit is its name in the manifest.
func (p *Pipeline) Decided(conduit, operation string, allowed bool) {
	said := strconv.FormatBool(allowed)
	p.add(p.metrics.decisions, 1, said)
	p.add(p.metrics.conduitDecisions, 1, p.conduit(conduit), operation, said)
}

// Opened counts opens that the kernel did not allow by itself.
func (p *Pipeline) Opened(path OpenPath, allowed bool, number uint64) {
	if number == 0 {
		return
	}
	p.add(p.metrics.opens, number, string(path), strconv.FormatBool(allowed))
	if path == BySupervisor {
		p.add(p.metrics.decisions, number, strconv.FormatBool(allowed))
	}
}

// OpenedNatively counts the opens that the kernel allowed by itself.
func (p *Pipeline) OpenedNatively(number uint64) {
	if number > 0 {
		p.add(p.metrics.nativeOpens, number)
		p.add(p.metrics.decisions, number, strconv.FormatBool(true))
	}
}

// Refused counts an access or a system call that was refused, or would have been in mode audit.
func (p *Pipeline) Refused(operation string) {
	if !slices.Contains(operations, operation) {
		operation = callOperation
	}
	p.add(p.metrics.refusals, 1, operation)
}

// Denied counts a denial. policy is "" if none has decided. What it returns is told of the audit
// record.
func (p *Pipeline) Denied(task, policy string, reason Reason) interface{ Recorded(number uint64) } {
	return p.add(p.metrics.denials, 1, p.task(task), p.policy(policy), string(reason))
}

// InAudit is the mode of [Pipeline.WouldDeny] when it is the pipeline that denies nothing.
const InAudit = "audit"

// WouldDeny counts an access that is forbidden, and allowed because of a mode: that of the policy,
// or [InAudit]. policy is "" if none has decided.
func (p *Pipeline) WouldDeny(policy, mode string, reason Reason) {
	p.add(p.metrics.wouldDeny, 1, p.policy(policy), mode, string(reason))
}

// Learned counts classes that a capability set has gained in use.
func (p *Pipeline) Learned(classes int) { p.add(p.metrics.learned, uint64(max(0, classes))) }

// Foreseen counts an instance that was analysed when its first session began.
func (p *Pipeline) Foreseen() { p.add(p.metrics.foreseen, 1) }

// Results of runs of the analysis.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Cancelled = "cancelled"
)

var analysisResults = []string{Succeeded, Failed, Cancelled}

// AnalysisEnded counts a run of the analysis: [Succeeded], [Failed] or [Cancelled].
func (p *Pipeline) AnalysisEnded(result string) {
	p.add(p.metrics.analyses, 1, result)
}

// Restarted counts a task that is to be started again.
func (p *Pipeline) Restarted(task string) { p.add(p.metrics.restarts, 1, p.task(task)) }

// Discarded counts a worker that was killed because it was not rolled back as it should.
func (p *Pipeline) Discarded(task string) { p.add(p.metrics.discardedWorker, 1, p.task(task)) }
