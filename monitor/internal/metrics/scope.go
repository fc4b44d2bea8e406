// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Other is the value of a label in place of the names that are too many. No object of a manifest
// can be called so.
const Other = "(other)"

// maxPipelines limits how many pipelines have series of their own. The others share a scope.
const maxPipelines = 512

// limits say how many names of manifests a label may have: of one pipeline, and of all.
var limits = map[string]struct{ each, all int64 }{
	taskLabel.Name:    {32, 1024},
	conduitLabel.Name: {64, 1024},
	policyLabel.Name:  {64, 1024},
	sourceLabel.Name:  {128, 128},
}

// scope holds the series of one pipeline, or of what belongs to none.
type scope struct {
	pipeline string // the label
	series   []growing[values, *series]
	names    growing[name, string] // the labels of names
	active   atomic.Int64          // sessions

	admitted admitted
	closed   bool                // it admits no names; guarded by scopes.mu
	users    map[*Pipeline]Names // the pipelines in it; guarded likewise
}

// admitted is how many names have a value of their own, by label. It changes with scopes.mu held.
type admitted map[string]*atomic.Int64

func nobody() admitted {
	a := admitted{}
	for label := range limits {
		a[label] = new(atomic.Int64)
	}
	return a
}

// name is a name of a manifest for which a label has a value.
type name struct{ label, text string }

func newScope(pipeline string, counters int) *scope {
	return &scope{pipeline: pipeline, series: make([]growing[values, *series], counters), admitted: nobody(),
		users: map[*Pipeline]Names{}}
}

// label returns the value that stands for a name: the name itself unless there are too many.
// Empty stands for no name.
func (s *scope) label(all *scopes, of Label, text string) string {
	if text == "" {
		return ""
	}
	key := name{of.Name, text}
	if value, known := s.names.all()[key]; known {
		return value
	}
	if all.full(s, of.Name) {
		return Other
	}
	return all.admit(s, key)
}

// scopes are those of all pipelines. They are safe for concurrent use.
type scopes struct {
	counters int // series of a scope
	current  atomic.Pointer[[]*scope]

	mu       sync.Mutex // held while scopes change, not while they are gathered
	admitted admitted
}

func (all *scopes) begin(counters int) {
	all.counters, all.admitted = counters, nobody()
	all.current.Store(&[]*scope{})
}

func (all *scopes) open() []*scope { return slices.Clone(*all.current.Load()) }

func (all *scopes) full(s *scope, label string) bool {
	limit := limits[label]
	return s.admitted[label].Load() >= limit.each || all.admitted[label].Load() >= limit.all
}

// admit gives a name a value of its own, if there is still a place.
func (all *scopes) admit(s *scope, key name) string {
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.closed || all.full(s, key.label) {
		return Other
	}
	return s.names.get(key, func() string {
		s.admitted[key.label].Add(1)
		all.admitted[key.label].Add(1)
		return safe(key.text)
	})
}

// enter returns the scope of a pipeline with these names. There may be two of one name while one
// follows the other: they count together.
func (all *scopes) enter(p *Pipeline, pipeline string, of Names) *scope {
	all.mu.Lock()
	defer all.mu.Unlock()
	open := all.open()
	label := safe(pipeline)
	find := func(label string) *scope {
		at := slices.IndexFunc(open, func(s *scope) bool { return s.pipeline == label })
		if at < 0 {
			return nil
		}
		return open[at]
	}
	s := find(label)
	if s == nil && len(open) >= maxPipelines {
		label = Other
		s = find(label)
	}
	if s == nil {
		s = newScope(label, all.counters)
		open = append(open, s)
		all.current.Store(&open)
	}
	s.users[p] = of
	return s
}

// leave forgets a pipeline. With the last of its name its series disappear; otherwise those with
// names that the others do not have.
func (all *scopes) leave(p *Pipeline, counters []*Counter) {
	s := p.scope
	all.mu.Lock()
	delete(s.users, p)
	kept := map[string][]string{taskLabel.Name: nil, conduitLabel.Name: nil, policyLabel.Name: nil}
	for _, names := range s.users {
		names.addTo(kept)
	}
	if s.closed = len(s.users) == 0; s.closed {
		open := slices.DeleteFunc(all.open(), func(other *scope) bool { return other == s })
		all.current.Store(&open)
	}
	all.mu.Unlock()
	s.keep(all, kept)
	for _, counter := range counters {
		counter.keepIn(s)
	}
}

// addTo adds the names to lists by label.
func (n Names) addTo(lists map[string][]string) {
	lists[taskLabel.Name] = append(lists[taskLabel.Name], n.Tasks...)
	lists[conduitLabel.Name] = append(lists[conduitLabel.Name], n.Conduits...)
	for _, policy := range n.Policies {
		lists[policyLabel.Name] = append(lists[policyLabel.Name], policy.Name)
	}
}

// keep forgets the names of some labels but for those given. Others may take their places.
func (s *scope) keep(all *scopes, kept map[string][]string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.names.remove(func(one name, _ string) bool {
		names, concerned := kept[one.label]
		if !concerned || slices.Contains(names, one.text) {
			return false
		}
		s.admitted[one.label].Add(-1)
		all.admitted[one.label].Add(-1)
		return true
	})
}

// keepIn removes the series of a scope whose names it has forgotten.
func (c *Counter) keepIn(s *scope) {
	known := map[name]bool{}
	for one, value := range s.names.all() {
		known[name{one.label, value}] = true
	}
	s.series[c.at].remove(func(of values, _ *series) bool {
		for i, label := range c.labels {
			_, bounded := limits[label]
			if bounded && of[i] != "" && of[i] != Other && !known[name{label, of[i]}] {
				return true
			}
		}
		return false
	})
}
