// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"

	"shai.dev/monitor/internal/bug"
)

// ID identifies a policy: the SHA-256 of its canonical form.
type ID [sha256.Size]byte

// String returns the identity in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText writes the identity in hexadecimal.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (id *ID) UnmarshalText(text []byte) error {
	decoded, err := hex.DecodeString(string(text))
	if err != nil || len(decoded) != len(id) {
		return fmt.Errorf("read policy id %.80q: want %d hexadecimal digits", text, 2*len(id))
	}
	copy(id[:], decoded)
	return nil
}

// Policy is a compiled policy with its arguments bound. It is immutable and safe
// for concurrent use. Policies with equal IDs behave identically.
type Policy struct {
	id          ID
	rules       [2]*rule // read, update; comparisons look at them and the id first
	template    *Template
	values      []string // of the parameters
	obligations []*obligation
	usesIt      bool
}

// canonical returns the bytes that define the policy's meaning.
func (p *Policy) canonical() []byte {
	out := p.rules[readRule].appendTo([]byte("shai-policy-v1\n"))
	out = p.rules[updateRule].appendTo(out)
	for _, o := range p.obligations {
		out = o.appendTo(out)
	}
	return out
}

// sealKeys makes the keys of obligations that refer to this.read and the like, in their
// rule, their exits or behind these, depend on the whole policy: their own bytes do not
// contain the rule that they refer to.
func (p *Policy) sealKeys(obligations []*obligation, meaning string) {
	for _, o := range obligations {
		for _, e := range o.exits {
			p.sealKeys(e.behind, meaning)
		}
		if o.refersToThis() {
			o.key += meaning
		}
	}
}

func (o *obligation) refersToThis() bool {
	return slices.ContainsFunc(o.rule().clauses, func(c clause) bool { return c.refersToThis() }) ||
		slices.ContainsFunc(o.exits, func(e exit) bool {
			return e.clause().refersToThis() || slices.ContainsFunc(e.behind, (*obligation).refersToThis)
		})
}

func (p *Policy) finish() {
	p.id = sha256.Sum256(p.canonical())
	p.usesIt = p.rules[readRule].mentionsThis() || p.rules[updateRule].mentionsThis() ||
		slices.ContainsFunc(p.obligations, func(o *obligation) bool { return o.usesIt })
}

// nobody is used for a conduit without a policy: nobody may read it, write it, or read
// data derived from it.
var nobody = func() *Policy {
	t := &Template{name: "nobody", file: "built in", obligations: []loweredObligation{{rule: readRule}}}
	p, err := t.bindValues()
	if err != nil {
		bug.Found("%v", err)
	}
	return p
}()

// ID returns the policy's identity.
func (p *Policy) ID() ID { return p.id }

// Name returns the template's name.
func (p *Policy) Name() string { return p.template.name }

// Template returns the template that the policy was made from.
func (p *Policy) Template() *Template { return p.template }

// Arguments yields the bound parameters in the order of declaration.
func (p *Policy) Arguments() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i, parameter := range p.template.parameters {
			if !yield(parameter, p.values[i]) {
				return
			}
		}
	}
}

// Values returns the bound parameters in the order of declaration.
func (p *Policy) Values() []Value {
	values := make([]Value, len(p.values))
	for i, text := range p.values {
		value, err := parseArgument(p.template.types[i], text)
		if err != nil {
			bug.Found("policy %s is bound to %q: %v", p.Name(), text, err)
		}
		values[i] = value
	}
	return values
}

// String returns the policy in the form that manifests use: friends(owner: "bob").
func (p *Policy) String() string {
	name := p.template.name
	if name == "" {
		name = "policy of " + p.template.file
	}
	if len(p.values) == 0 {
		return name
	}
	arguments := make([]string, len(p.values))
	for i, parameter := range p.template.parameters {
		arguments[i] = parameter + ": " + String(p.values[i]).String()
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// Rule is a read or update rule of a conduit's policy. The zero Rule allows nobody
// anything.
type Rule struct {
	policy *Policy
	name   ruleName
	this   string
}

// Read returns the read rule for the named conduit.
func (p *Policy) Read(conduit string) Rule { return Rule{p, readRule, conduit} }

// Update returns the update rule for the named conduit.
func (p *Policy) Update(conduit string) Rule { return Rule{p, updateRule, conduit} }

// String names the rule for people.
func (r Rule) String() string {
	return fmt.Sprintf("%s of %s", r.name, r.owner())
}

func (r Rule) owner() *Policy {
	if r.policy == nil {
		return nobody
	}
	return r.policy
}

func (r Rule) compiled() *rule { return r.owner().rules[r.name] }
