// SPDX-License-Identifier: BSD-2-Clause

package policytest

import (
	"fmt"
	"strings"

	"shai.dev/monitor/policy"
)

// Outcome is how one test has ended.
type Outcome struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Name     string `json:"name"`
	Passed   bool   `json:"passed"`
	Expected string `json:"expected"` // allowed or denied
	Got      string `json:"got"`
	// Wrong says what differs from what was expected; "" if it passed.
	Wrong string `json:"wrong,omitempty"`
	// Sentence is the reason of a denial in a person's words; "it" is the conduit.
	Sentence   string             `json:"sentence,omitempty"`
	Derivation *policy.Derivation `json:"derivation,omitempty"` // of one that failed
}

// Coverage says which tests notice that a clause is there.
type Coverage struct {
	Policy string `json:"policy"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Rule   string `json:"rule"` // read, update or declassify
	// Decides are the tests whose answer is another one without the clause. If there is none,
	// the clause was never decisive: no test would notice that it is missing.
	Decides []string `json:"decides"`
}

// Run asks all questions of a suite.
func (s *Suite) Run() (outcomes []Outcome, coverage []Coverage) {
	for i := range s.tests {
		outcomes = append(outcomes, s.tests[i].run(s.File))
	}
	return outcomes, s.coverage()
}

func (t *test) run(file string) Outcome {
	out := Outcome{File: file, Line: t.position.Line, Name: t.name, Expected: answer(t.allowed)}
	question, err := t.ask(t.subject)
	if err != nil {
		out.Wrong = err.Error()
		return out
	}
	decision := question.Decide()
	out.Got, out.Sentence = answer(decision.Allowed), decision.Sentence
	switch {
	case decision.Allowed != t.allowed:
		out.Wrong = fmt.Sprintf("expected %s, got %s", out.Expected, out.Got)
	case !strings.Contains(decision.Reason, t.reason):
		out.Wrong = fmt.Sprintf("it is denied for another reason than %q", t.reason)
	default:
		out.Passed = true
		return out
	}
	out.Derivation = decision.Derivation
	return out
}

func answer(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// coverage removes each clause in turn and asks again. A clause that is executed is not yet
// one that decides: another clause may allow the same.
func (s *Suite) coverage() []Coverage {
	var all []Coverage
	seen := map[*policy.Template]bool{}
	for i := range s.tests {
		subject := s.tests[i].subject
		if seen[subject] {
			continue
		}
		seen[subject] = true
		for _, clause := range subject.Clauses() {
			all = append(all, s.clause(subject, clause))
		}
	}
	return all
}

func (s *Suite) clause(subject *policy.Template, clause policy.TemplateClause) Coverage {
	file, at := subject.Place(clause.Position)
	out := Coverage{Policy: subject.Name(), File: file, Line: int(at.Line), Column: int(at.Column), Rule: clause.Rule,
		Decides: []string{}}
	less := subject.Without(clause)
	for i := range s.tests {
		t := &s.tests[i]
		if t.subject == subject && t.allows(subject) != t.allows(less) {
			out.Decides = append(out.Decides, t.name)
		}
	}
	return out
}

func (t *test) allows(subject *policy.Template) bool {
	question, err := t.ask(subject)
	if err != nil {
		return false
	}
	question.Environment.Explain, question.Environment.Bulk = false, true
	return question.Decide().Allowed
}
