// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"fmt"
	"slices"

	"shai.dev/monitor/internal/content"
	"shai.dev/monitor/policy"
)

// The facts of a log are the entries of its file, each at its offset, and nothing else: facts of
// the bundle, of sources and of requests cannot be about it. The file is the truth; whoever writes
// it calls [Catalog.ChangeLog].

// logsOf returns the types of the logs among rules, by name.
func logsOf(rules []Rule) map[string]*content.Type {
	logs := map[string]*content.Type{}
	for _, rule := range rules {
		if kind, err := content.Find(rule.Type); err == nil && kind.Log {
			logs[rule.Path] = kind
		}
	}
	return logs
}

// Logs lists the names of the logs, sorted.
func (s *State) Logs() []string { return sortedKeys(s.rules.logs) }

// LogType returns the type of a log; nil if the conduit is none.
func (s *State) LogType(conduit string) *content.Type { return s.rules.logs[conduit] }

// LogLength returns how long a log is, as far as its entries are facts.
func (s *State) LogLength(conduit string) int64 {
	kind := s.LogType(conduit)
	if kind == nil {
		return 0
	}
	entries := kind.Entries(conduit)
	last, found := s.facts.Last(conduit, entries.Relation, len(entries.Arguments))
	if !found {
		return 0
	}
	return last.Offset + int64(len(kind.Line(last)))
}

// LogEntries returns all entries of a log that are facts, in their order.
func (s *State) LogEntries(conduit string) (entries []policy.Fact) {
	kind := s.LogType(conduit)
	if kind == nil {
		return nil
	}
	s.Lookup(kind.Entries(conduit), func(fact policy.Fact) bool {
		fact.Arguments = slices.Clone(fact.Arguments) // the index uses them again
		entries = append(entries, fact)
		return true
	})
	return entries
}

// ChangeLog removes and adds entries of logs, in one durable step. An error that wraps ErrView
// comes with the Change, which is in force.
func (w Writer) ChangeLog(remove, add []policy.Fact) (*Change, error) {
	return w.commit("change log", func(d *draft) error {
		for _, fact := range slices.Concat(remove, add) {
			if !fact.Positioned || d.next.rules.logs[fact.Conduit] == nil {
				return fmt.Errorf("%q says %s: it is not an entry of a log", fact.Conduit, fact.Relation)
			}
		}
		return d.facts(remove, add)
	})
}

// checkElsewhere refuses facts about logs that do not come from their files.
func (r *ruleset) checkElsewhere(facts ...[]policy.Fact) error {
	for _, fact := range slices.Concat(facts...) {
		if kind := r.logs[fact.Conduit]; kind != nil {
			return fmt.Errorf("fact in %q: the conduit is a log of type %s, whose facts are the entries of its file; "+
				"only tasks write them", fact.Conduit, kind.Name)
		}
	}
	return nil
}

// formerEntries returns the entries of conduits that were logs and are none in the next rules.
func (s *State) formerEntries(next *ruleset) (entries []policy.Fact) {
	for conduit, kind := range s.rules.logs {
		if next.logs[conduit] != kind {
			entries = append(entries, s.LogEntries(conduit)...)
		}
	}
	return entries
}
