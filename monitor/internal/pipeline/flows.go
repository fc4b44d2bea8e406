// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/policy"
)

// channelAt returns the channel whose checked end has this number in the task.
func (t *Task) channelAt(number int) (policy.Conduit, bool) {
	for _, place := range t.role().placements {
		if int(place.capability.Number) == number && place.end.checked {
			return t.pipeline.channelConduit(place.end.conduit, place.end.slot)
		}
	}
	return policy.Conduit{}, false
}

// channelConduit returns a pipe or channel in the form that policies use.
func (p *Pipeline) channelConduit(name string, slot int) (policy.Conduit, bool) {
	for _, conduit := range p.spec.Conduits {
		if conduit.Name != name || conduit.Policy == nil {
			continue
		}
		kind, err := policy.ParseConduitKind(conduit.Kind)
		if err != nil {
			return policy.Conduit{}, false
		}
		bound, err := p.services.bindPolicy(conduit.Policy.Name, conduit.Policy.Arguments)
		if err != nil {
			return policy.Conduit{}, false
		}
		return policy.Conduit{
			Name: fmt.Sprintf("%s/%s/%d", p.name, name, slot), Kind: kind, Internal: true, Policy: bound,
		}, true
	}
	return policy.Conduit{}, false
}

// checkFlows decides on the flows over pipes and channels before a task starts, and
// before a session's worker learns whose session it is. A task or worker whose end is
// forbidden does not start.
func (t *Task) checkFlows(who decision.Subject, places []placement) error {
	for _, place := range places {
		if place.directory != "" {
			continue
		}
		conduit, found := t.pipeline.channelConduit(place.end.conduit, place.end.slot)
		if !found {
			return fmt.Errorf("conduit %s has no policy, so nothing may use it", place.end.conduit)
		}
		what := policy.Read
		if place.end.writer {
			what = policy.Write
		}
		if decision := t.pipeline.decideAhead(who, what, conduit); !decision.Allowed {
			return fmt.Errorf("%s may not %s %s: %s", who.Instance, what, place.end.conduit, decision.Reason)
		}
	}
	return nil
}
