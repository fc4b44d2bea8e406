// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"fmt"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// replay is the set of facts that results from steps on an empty set.
type replay struct {
	standing map[group]map[policy.Tuple]int // and the size of each fact
	count    int
	bytes    int
}

type group struct{ conduit, relation string }

func newReplay() *replay { return &replay{standing: map[group]map[policy.Tuple]int{}} }

// follow takes steps. More facts than a source may have are an error.
func (r *replay) follow(steps []catalog.Step) error {
	for _, step := range steps {
		in, tuple := group{step.Fact.Conduit, step.Fact.Relation}, policy.NewTuple(step.Fact.Arguments...)
		if step.Verb == catalog.StepReplace {
			for other := range r.standing[in] {
				r.remove(in, other)
			}
		}
		r.remove(in, tuple)
		if step.Verb != catalog.StepRemove {
			r.add(in, tuple, size(step.Fact))
		}
		switch {
		case r.count > maxFacts:
			return fmt.Errorf("more than %d facts; divide them among several sources", maxFacts)
		case r.bytes > maxBytes:
			return fmt.Errorf("more than %d bytes of facts; divide them among several sources", maxBytes)
		}
	}
	return nil
}

func (r *replay) add(in group, tuple policy.Tuple, size int) {
	if r.standing[in] == nil {
		r.standing[in] = map[policy.Tuple]int{}
	}
	r.standing[in][tuple] = size
	r.count++
	r.bytes += size
}

func (r *replay) remove(in group, tuple policy.Tuple) {
	size, stands := r.standing[in][tuple]
	if !stands {
		return
	}
	r.count--
	r.bytes -= size
	if delete(r.standing[in], tuple); len(r.standing[in]) == 0 {
		delete(r.standing, in)
	}
}

// size is the number of bytes of a fact's texts.
func size(fact policy.Fact) int {
	bytes := len(fact.Conduit) + len(fact.Relation)
	for _, value := range fact.Arguments {
		bytes += len(value.Text())
	}
	return bytes
}

func (r *replay) facts() []policy.Fact {
	facts := make([]policy.Fact, 0, r.count)
	for in, tuples := range r.standing {
		for tuple := range tuples {
			facts = append(facts, policy.Fact{Conduit: in.conduit, Relation: in.relation, Arguments: tuple.Values()})
		}
	}
	return facts
}
