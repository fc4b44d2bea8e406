// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"iter"
)

var errUnfinished = errors.New("not built yet")

// File is a parsed policy file.
type File struct {
	Name     string
	Policies []*Declaration
}

// Declaration is one policy of a file: `policy name(parameters) { clauses }`, or
// the bare clauses of a file without such blocks (Name is then "").
type Declaration struct {
	Name       string
	Parameters []string
}

// Parse reads a policy file. filename is only used in messages. The error is an
// [Errors] with every mistake found.
func Parse(filename string, text []byte) (*File, error) { return nil, errUnfinished }

// Format returns the file's canonical text. Parsing it gives an equal File.
func (f *File) Format() []byte { return nil }

// Compile checks every policy of the file (predicates, arities, bound variables)
// and returns one template per declaration. The error is an [Errors].
func (f *File) Compile() ([]*Template, error) { return nil, errUnfinished }

// CompileText parses a text holding exactly one policy and compiles it.
func CompileText(filename string, text []byte) (*Template, error) { return nil, errUnfinished }

// Template is a compiled policy whose parameters are not bound yet. It is
// immutable and safe for concurrent use.
type Template struct{ name string }

// Name returns the declared name, "" for bare clauses.
func (t *Template) Name() string { return t.name }

// Parameters returns the declared parameters in order.
func (t *Template) Parameters() []string { return nil }

// Bind gives every parameter its value. A missing or undeclared argument is an
// error.
func (t *Template) Bind(arguments map[string]string) (*Policy, error) { return nil, errUnfinished }

// BindValues is Bind with the values in the order of Parameters.
func (t *Template) BindValues(values ...string) (*Policy, error) { return nil, errUnfinished }

// Candidates returns, in ascending order, argument lists (in the order of
// Parameters) for which the comparison taint ⊒ label may succeed. They are found
// through the facts' indexes, not by trying; the caller still has to decide each
// with MayRead. complete promises that every other argument list is denied.
func (t *Template) Candidates(taint Label, state State, environment Environment) (bindings [][]string, complete bool) {
	return nil, false
}

// ID identifies a policy: the SHA-256 of its canonical form.
type ID [32]byte

// Policy is a compiled policy with its arguments bound. It is immutable and safe
// for concurrent use. Policies with equal IDs behave identically.
type Policy struct{ id ID }

// ID returns the policy's identity.
func (p *Policy) ID() ID { return p.id }

// Name returns the template's name.
func (p *Policy) Name() string { return "" }

// Arguments yields the bound parameters in the order of declaration.
func (p *Policy) Arguments() iter.Seq2[string, string] { return func(func(string, string) bool) {} }

// String returns the policy as a conduit names it: friends(owner: "bob").
func (p *Policy) String() string { return "" }

// MentionsThis reports whether any rule depends on which conduit the policy
// stands on. If not, two conduits with this policy never differ.
func (p *Policy) MentionsThis() bool { return false }

// Read returns the read rule as it stands on the named conduit.
func (p *Policy) Read(conduit string) Rule { return Rule{} }

// Update returns the update rule as it stands on the named conduit.
func (p *Policy) Update(conduit string) Rule { return Rule{} }

// Label returns the obligations that follow the data of the named conduit. For a
// task's taint, pass the task's name.
func (p *Policy) Label(conduit string) Label { return Label{} }

// Rule is a read or update rule standing on a conduit.
type Rule struct{ policy *Policy }

// Label is a set of obligations: what whatever is derived from some data is
// subject to. The zero Label demands nothing. Labels are immutable.
type Label struct{ obligations []struct{} }

// IsEmpty reports whether the label demands nothing.
func (l Label) IsEmpty() bool { return len(l.obligations) == 0 }

// Join returns the label of data derived from both: all obligations, without
// duplicates.
func (l Label) Join(other Label) Label { return l }

// Key identifies the label's meaning; equal keys mean equal labels.
func (l Label) Key() string { return "" }

// String lists the obligations for people.
func (l Label) String() string { return "" }

// RuleAtLeast reports whether r1 is at least as restrictive as r2: whenever r1
// lets someone read, so does r2. ok is only claimed under the returned conditions.
func RuleAtLeast(r1, r2 Rule, state State, environment Environment) (ok bool, conditions []Condition) {
	return false, nil
}

// LabelAtLeast reports whether everything l2 demands is demanded by l1.
func LabelAtLeast(l1, l2 Label, state State, environment Environment) (ok bool, conditions []Condition) {
	return false, nil
}

// Evaluate decides one rule for the environment's session and target.
func Evaluate(rule Rule, state State, environment Environment) Decision { return Decision{} }

// MayRead decides whether a task with this taint may read data with this label.
// It does not depend on the session.
func MayRead(taint, label Label, state State, environment Environment) Decision { return Decision{} }

// MayWrite decides whether a task with this taint may write the target; its update
// rule is evaluated for the environment's session.
func MayWrite(taint Label, target Conduit, state State, environment Environment) Decision {
	return Decision{}
}

// MayLeave decides whether data with this taint may leave by the egress conduit to
// the environment's session, the connected party. An egress conduit without a
// policy adds nothing to what the taint demands.
func MayLeave(taint Label, egress Conduit, state State, environment Environment) Decision {
	return Decision{}
}

// Holds reports whether the condition is true now. Predictions are checked against
// environment.Session, clock conditions against environment.Now.
func (c Condition) Holds(state State, environment Environment) bool { return false }

// Derivation explains a decision: a tree of what was shown, or of what failed.
type Derivation struct {
	Holds    bool          `json:"holds"`
	Text     string        `json:"text"`             // one line
	Source   string        `json:"source,omitempty"` // file:line:column of the clause or literal
	Children []*Derivation `json:"children,omitempty"`
}

// String returns the derivation as an indented text.
func (d *Derivation) String() string { return "" }

// FactBase is an indexed set of facts in memory. Any number of goroutines may read
// it at once; a writer must be alone.
type FactBase struct{}

// NewFactBase returns an empty set.
func NewFactBase() *FactBase { return &FactBase{} }

// Add puts a fact in and reports whether it was new.
func (b *FactBase) Add(fact Fact) bool { return false }

// Remove takes a fact out and reports whether it was there.
func (b *FactBase) Remove(fact Fact) bool { return false }

// Len returns the number of facts.
func (b *FactBase) Len() int { return 0 }

// Has implements [Facts].
func (b *FactBase) Has(pattern Pattern) bool { return false }

// Lookup implements [Facts].
func (b *FactBase) Lookup(pattern Pattern, yield func(Fact) bool) {}

// Mentioning calls yield with each fact that has value among its arguments.
func (b *FactBase) Mentioning(value Value, yield func(Fact) bool) {}

// Clone returns an independent copy.
func (b *FactBase) Clone() *FactBase { return b }

// ConduitTable is a set of conduits in memory, for tests and small programs.
type ConduitTable struct{}

// NewConduitTable returns a table of the given conduits.
func NewConduitTable(conduits ...Conduit) *ConduitTable { return &ConduitTable{} }

// ConduitByName implements [Conduits].
func (t *ConduitTable) ConduitByName(name string) (Conduit, bool) { return Conduit{}, false }

// ConduitByID implements [Conduits].
func (t *ConduitTable) ConduitByID(id int64) (Conduit, bool) { return Conduit{}, false }

// StateOf joins facts and conduits to a state.
func StateOf(facts Facts, conduits Conduits) State {
	return struct {
		Facts
		Conduits
	}{facts, conduits}
}

var nobody = &Policy{}
