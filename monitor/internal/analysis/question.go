// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"math"
	"slices"
)

// question asks for the same accesses of several instances. A result keeps the questions that
// are not answered yet: what they could give is decided when it happens.
type question struct {
	tasks []string // of the instances
	all   bool     // every instance of the tasks is meant, else those in only
	only  []*instanceName
	at    int           // next in only
	after *instanceName // the last one of all that has been asked

	what    asked
	classes []uint32 // of askReads, askWrites and askHolders
	part    *part    // of askCandidates
}

// asked is what a question is about.
type asked uint8

const (
	askReads      asked = iota // reads of the classes, unless the instance has them
	askWrites                  // writes of the classes
	askHolders                 // reads and writes of the classes that the instance has
	askOthers                  // accesses to conduits without a class
	askCandidates              // reads of the part's classes, unless the instance has them
	askEverything
)

// The cost of questions: looking at an instance costs one, a decision more.
const (
	decisionCost  = 64
	candidateCost = 16 * decisionCost
)

// maxQuestions limits how many questions a result keeps. If there are more, it asks for
// everything instead.
const maxQuestions = 64

func (u *update) ask(q question) {
	if !q.all && len(q.only) == 0 || (q.what == askReads || q.what == askWrites) && len(q.classes) == 0 {
		return
	}
	u.questions = append(u.questions, q)
}

// answer marks what the questions ask for, as far as the limit allows, and returns the
// questions that are left. Those about few instances come first.
func (u *update) answer() (left []question) {
	budget := int64(math.MaxInt64)
	if u.options.Limit > 0 {
		budget = int64(u.options.Limit) * decisionCost
	}
	slices.SortStableFunc(u.questions, func(a, b question) int { return a.size(u) - b.size(u) })
	for _, q := range u.questions {
		if budget <= 0 || !u.advance(&q, &budget) {
			left = append(left, q)
		}
	}
	if len(left) <= maxQuestions {
		return left
	}
	var tasks []string
	for _, q := range left {
		tasks = append(tasks, q.tasks...)
	}
	slices.Sort(tasks)
	return []question{{tasks: slices.Compact(tasks), all: true, what: askEverything}}
}

func (q *question) size(u *update) int {
	if q.all {
		return len(u.instances)
	}
	return len(q.only) - q.at
}

// advance goes on with a question. It reports whether the question is answered.
func (u *update) advance(q *question, budget *int64) bool {
	if !q.all {
		for ; q.at < len(q.only); q.at++ {
			if *budget <= 0 {
				return false
			}
			if i, found := u.find(*q.only[q.at]); found && slices.Contains(q.tasks, q.only[q.at].Task) {
				*budget -= u.mark(i, q)
			}
		}
		return true
	}
	i := 0
	if q.after != nil {
		var found bool
		if i, found = u.find(*q.after); found {
			i++
		}
	}
	for ; i < len(u.instances); i++ {
		if *budget <= 0 {
			return false
		}
		if slices.Contains(q.tasks, u.instances[i].Instance.Task) {
			*budget -= u.mark(i, q)
		}
		q.after = &u.instances[i].Instance
	}
	return true
}

// find returns the place of an instance.
func (u *update) find(instance Instance) (int, bool) {
	return findIn(u.instances, instance)
}

// mark marks what a question asks for of one instance, and returns the cost.
func (u *update) mark(i int, q *question) (cost int64) {
	c := u.instances[i]
	if u.fresh[i] || c.awaited && q.what != askEverything {
		return 1 // everything of it is decided anyway
	}
	cost = 1
	switch q.what {
	case askReads, askHolders:
		for _, class := range q.classes {
			if contains(c.Reads, class) == (q.what == askHolders) {
				d := u.at(i)
				d.mark(&d.reads, class)
				cost += decisionCost
			}
			if q.what == askHolders && contains(c.Writes, class) {
				d := u.at(i)
				d.mark(&d.writes, class)
				cost += decisionCost
			}
		}
	case askWrites:
		for _, class := range q.classes {
			d := u.at(i)
			d.mark(&d.writes, class)
			cost += decisionCost
		}
	case askOthers:
		if !u.at(i).others {
			u.at(i).others = true
			cost += decisionCost
		}
	case askCandidates:
		d := u.at(i)
		d.candidates = append(d.candidates, q.part)
		cost += candidateCost
	case askEverything:
		u.at(i).all = true
		cost += candidateCost + decisionCost*int64(len(c.Reads)+len(c.Writes))
	}
	return cost
}
