// SPDX-License-Identifier: BSD-2-Clause

package policytest

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"time"

	"shai.dev/monitor/internal/factsource"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// defaultName is the name of a conduit that has none.
const defaultName = "/the/conduit"

// reader turns a file into questions. It continues after an error, so that a user sees all
// of them at once.
type reader struct {
	suite    *Suite
	document *manifest.Document
	file     suiteFile
	facts    []policy.Fact    // of all tests
	conduits []policy.Conduit // that hasPol finds
	unbound  map[string]bool  // what is wrong with the arguments of all tests, as far as it is reported
}

func (r *reader) tests() {
	r.facts = statements(r.file.Facts)
	for i, path := range r.file.FactFiles {
		r.facts = append(r.facts, r.factFile(fmt.Sprintf("factFiles[%d]", i), path)...)
	}
	for i := range r.file.Conduits {
		at := fmt.Sprintf("conduits[%d]", i)
		if r.file.Conduits[i].Name == "" {
			r.document.Fail(at, "", "the conduit has no name")
		}
		r.conduits = append(r.conduits, r.conduit(at, &r.file.Conduits[i]))
	}
	names := map[string]manifest.Position{}
	for i := range r.file.Tests {
		at := fmt.Sprintf("tests[%d]", i)
		e := &r.file.Tests[i]
		if first, taken := names[e.Name]; taken && e.Name != "" {
			r.document.Fail(at+".name", "rename one of them", "the test %q is there twice, first on line %d", e.Name, first.Line)
		}
		names[e.Name] = r.document.Position(at + ".name")
		r.test(at, e)
	}
}

// test reads one test.
func (r *reader) test(at string, e *entry) {
	subject, err := r.suite.Policies.Only(e.Policy)
	if err != nil {
		r.document.Fail(at+".policy", "", "%v", err)
		return
	}
	if e.Reason != "" && e.Expect == "allowed" {
		r.document.Fail(at+".reason", "expect denied, or remove the reason", "only a denial has a reason")
	}
	question := Question{Operation: Operation(e.Operation), Conduit: r.conduit(at+".conduit", e.Conduit),
		State: r.state(at, e), Environment: r.environment(at, e)}
	if e.Operation != string(Derive) && e.To != nil {
		r.document.Fail(at+".to", "write operation: derive", "only derived data flow to another conduit")
	}
	if e.Operation != string(Update) && e.Holds != nil {
		r.document.Fail(at, "write operation: update", "only an update holds other data")
	}
	if e.Operation != string(Update) && (e.Operation != string(Derive) || e.To == nil) && e.Content != nil {
		r.document.Fail(at, "write operation: update, or derive with to", "only what is written has content")
	}
	question.To = r.conduit(at+".to", e.To)
	if e.To == nil {
		question.To.Kind = policy.ConnectionConduit // to the party of the session
	}
	if e.Holds != nil {
		if held, ok := r.bind(at+".holds", e.Holds.Policy, e.Holds.Arguments); ok {
			question.Holds = held.Label("task")
		}
	}
	arguments := maps.Clone(r.file.Arguments)
	if e.Arguments != nil {
		arguments = e.Arguments
	}
	ask := func(subject *policy.Template) (Question, error) {
		bound, err := subject.Bind(arguments)
		if err != nil {
			return Question{}, err
		}
		asked := question
		asked.Conduit.Policy = bound
		return asked, nil
	}
	if _, err := ask(subject); err != nil {
		r.unbindable(at, e.Arguments != nil, err)
		return
	}
	r.suite.tests = append(r.suite.tests, test{name: e.Name, position: r.document.Position(at + ".name"),
		subject: subject, ask: ask, allowed: e.Expect == "allowed", reason: e.Reason})
}

// unbindable reports arguments that do not fit: those of the test, or once those of all tests.
func (r *reader) unbindable(at string, own bool, err error) {
	field := at + ".arguments"
	if !own && len(r.file.Arguments) > 0 {
		if field = "arguments"; r.unbound[err.Error()] {
			return
		}
		if r.unbound == nil {
			r.unbound = map[string]bool{}
		}
		r.unbound[err.Error()] = true
	}
	r.document.Fail(field, "give arguments: {parameter: value}", "%v", err)
}

// state is what the facts say in one test.
func (r *reader) state(at string, e *entry) policy.State {
	facts := policy.NewFactBase()
	for _, fact := range append(r.facts[:len(r.facts):len(r.facts)], statements(e.Facts)...) {
		if _, err := facts.Add(fact); err != nil {
			r.document.Fail(at+".facts", "", "%v", err)
		}
	}
	return policy.StateOf(facts, policy.NewConduitTable(r.conduits...))
}

func (r *reader) environment(at string, e *entry) policy.Environment {
	session := &policy.Session{Principal: e.Principal, Region: e.Region}
	if e.Address != "" {
		ip, err := netip.ParseAddr(e.Address)
		if err != nil {
			r.document.Fail(at+".address", "write it as 192.0.2.1 or 2001:db8::1", "%q is no IP address", e.Address)
		}
		session.IP = ip
	}
	environment := policy.Environment{Session: session, Explain: true}
	field, clock := at+".time", e.Time
	if clock == "" {
		field, clock = "time", r.file.Time
	}
	if clock != "" {
		now, err := time.Parse(time.RFC3339Nano, clock)
		if err != nil {
			r.document.Fail(field, `write it as "2027-01-31T00:00:00Z"`, "%q is no time", clock)
		}
		environment.Now = now
	}
	if e.Content != nil {
		environment.Update = &policy.Update{NewLength: int64(e.Content.Length)}
		for _, w := range e.Content.Tuples {
			environment.Update.Facts = append(environment.Update.Facts,
				factsOf(statement{Says: w.Relation, Tuples: w.Tuples, Offset: w.Offset})...)
		}
	}
	return environment
}

// conduit reads a conduit; nil is one of which nothing is said.
func (r *reader) conduit(at string, c *conduit) policy.Conduit {
	if c == nil {
		return policy.Conduit{Name: defaultName, Kind: policy.FileConduit}
	}
	out := policy.Conduit{ID: int64(c.ID), Name: cmp.Or(c.Name, defaultName), Type: c.Type, Internal: c.Internal}
	if c.Length != nil {
		out.Length, out.Measured = int64(*c.Length), true
	}
	// Of an unknown kind an error is there already.
	out.Kind, _ = policy.ParseConduitKind(c.Kind)
	if c.Policy != "" {
		out.Policy, _ = r.bind(at, c.Policy, c.Arguments)
	}
	return out
}

func (r *reader) bind(at, name string, arguments map[string]string) (*policy.Policy, bool) {
	template, err := r.suite.Policies.Only(name)
	if err != nil {
		r.document.Fail(at+".policy", "", "%v", err)
		return nil, false
	}
	bound, err := template.Bind(arguments)
	if err != nil {
		r.document.Fail(at+".arguments", "give arguments: {parameter: value}", "%v", err)
		return nil, false
	}
	return bound, true
}

func statements(list []statement) []policy.Fact {
	var facts []policy.Fact
	for _, one := range list {
		facts = append(facts, factsOf(one)...)
	}
	return facts
}

func factsOf(s statement) []policy.Fact {
	var facts []policy.Fact
	for _, tuple := range s.Tuples {
		fact := policy.Fact{Conduit: s.Conduit, Relation: s.Says, Arguments: tuple.Values()}
		if s.Offset != nil {
			fact.Positioned, fact.Offset = true, int64(*s.Offset)
		}
		facts = append(facts, fact)
	}
	return facts
}

func (r *reader) factFile(at, name string) []policy.Fact {
	path := filepath.Join(filepath.Dir(r.suite.File), name)
	r.suite.Reads = append(r.suite.Reads, path)
	file, err := plainfile.Open(path)
	if err != nil {
		r.document.Fail(at, "", "%v", err)
		return nil
	}
	defer file.Close()
	facts, err := factsource.ReadStatements(file, path, manifest.Declared{})
	if err != nil {
		r.document.Fail(at, "", "%v", err)
	}
	return facts
}
