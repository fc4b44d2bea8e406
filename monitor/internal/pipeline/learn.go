// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/wire"
)

// A capability set grows while it is in use. Sessions report what the analysis did not foresee;
// the owner of the pipeline extends the analysis (Services.Unforeseen), puts the sets that have
// grown in force (Grow), and gives them to live sessions (Publish). What a set gains in this
// way has state conditions, like everything else in it.

// learns reports whether what the session does is learnt: not in mode dynamic, which decides on
// every access, nor in mode audit, which records every access that was not foreseen.
func (s *session) learns() bool {
	return s.mode == wire.ModeShai && s.pipeline.services.Unforeseen != nil
}

// learn reports that the policies allow the session a class of documents that is not in its
// set. Only documents that the view links can be in a set.
func (s *session) learn(class uint32) {
	if s.learns() && len(s.pipeline.documentClasses(s.pipeline.services.state(), []uint32{class})) > 0 {
		s.unforeseen(class)
	}
}

// learnSet reports that the session has not got the set that an analysis gives its instance:
// there is none, or the session's supervisor has an earlier one.
func (s *session) learnSet() {
	if s.learns() {
		s.unforeseen(0)
	}
}

// unforeseen reports an access, once for each set that the session has.
func (s *session) unforeseen(class uint32) {
	s.mu.Lock()
	instance, reported := s.holds.instance, s.learnt[class]
	if s.learnt == nil {
		s.learnt = map[uint32]bool{}
	}
	s.learnt[class] = true
	s.mu.Unlock()
	if !reported {
		s.pipeline.services.Unforeseen(s.pipeline.name, analysis.Access{Instance: instance, Class: class})
	}
}

// adopt replaces the set of a session in mode shai, if it is one of the instance.
func (s *session) adopt(holds *capabilitySet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode == wire.ModeShai && s.holds != nil && s.holds != holds &&
		s.holds.subject.Instance == holds.subject.Instance {
		s.take(holds)
		s.learnt = nil
	}
}

// Grow puts the set of an instance in force that has gained accesses and lost none. After an
// error the former set stays in force. The caller holds Binding.
func (p *Pipeline) Grow(found *analysis.Capabilities) error {
	task := p.tasks[found.Instance.Task]
	if len(task.spec.Parameters) == 0 {
		return nil
	}
	holds, err := p.prepareAnalyzed(p.services.state(), task, found)
	if err == nil {
		p.putSet(holds, false)
	}
	return err
}
