// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// answerBind answers whether a session may be bound to a user whose signature the
// supervisor has verified: because the analysis did not foresee the instance, because a
// policy looks at the address, because the policies that forbid it are not enforced, or in
// mode dynamic. The instance's set goes before the answer, unless the supervisor has it: each
// set that it is told of makes it ask again about logins that wait.
func (v *supervised) answerBind(question supervision.AskBind) {
	answer := supervision.Bind{Session: question.Session, Sequence: question.Sequence}
	p := v.pipeline
	// No change of facts between the decision and the set.
	p.services.Binding.RLock()
	defer p.services.Binding.RUnlock()
	holds, err := v.mayBind(question)
	if err != nil {
		answer.Status, answer.Reason = int32(unix.EACCES), wire.Truncate(err.Error(), wire.ReasonMax)
		if s := v.session(question.Session); s != nil {
			s.mu.Lock()
			s.refusal = err.Error() // the supervisor reports the refusal with as much as a record holds
			s.mu.Unlock()
		}
		v.send(answer)
		return
	}
	p.feeding.Lock()
	defer p.feeding.Unlock()
	if err := v.tellInForce(holds.subject.Instance); err != nil {
		answer.Status, answer.Reason = int32(unix.EACCES), wire.Truncate(err.Error(), wire.ReasonMax)
	}
	v.send(answer)
}

func (v *supervised) mayBind(question supervision.AskBind) (*capabilitySet, error) {
	s := v.session(question.Session)
	if s == nil {
		return nil, errors.New("the session has ended")
	}
	if question.Region != s.region {
		return nil, errors.New("the region of the connection's address has just changed; connect again")
	}
	holds, _, err := s.decideBinding(question.Principal)
	return holds, err
}

// answerRecord answers a session's question that its supervisor cannot answer by itself.
func (v *supervised) answerRecord(question supervision.AskRecord) {
	s := v.session(question.Session)
	if s == nil {
		return
	}
	sequence, message, err := wire.DecodeFromTask(question.Record)
	var rule requestRule
	if err == nil {
		rule = sessionRequests[message.Type()]
		if !rule.needsBinding || s.bound() == nil {
			err = errors.New("the supervisor passed on another message than a question of a session with a user")
		}
	}
	if err == nil {
		serving := v.pipeline.counts.Begin(rule.kind)
		err = rule.serve(s, sequence, message, serving)
		serving.End()
	}
	if err != nil {
		v.pipeline.refused(metrics.Protocol, s.subject(), "message", "", err.Error())
		s.worker.Kill()
	}
}
