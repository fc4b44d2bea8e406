// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"shai.dev/monitor/internal/content"
	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// Bundle is everything that a monitor enforces: policies, the conduits that carry them,
// the principals that may authenticate, and facts. Its content identifies it.
type Bundle struct {
	Version    uint64        `json:"version"`         // set by Apply, counted from 1
	Hash       string        `json:"hash"`            // of the manifests, lower-case hex SHA-256
	Label      string        `json:"label,omitempty"` // the sender's name for it; not part of the content
	Manifest   []byte        `json:"manifest,omitempty"`
	Policies   []PolicyText  `json:"policies"`
	Rules      []Rule        `json:"rules"`
	Principals []Principal   `json:"principals,omitempty"`
	Facts      []policy.Fact `json:"facts,omitempty"` // those that are added and removed with the bundle
	// Sources are the names of the sources from which the monitor fetches facts; see
	// sources.go.
	Sources []string `json:"sources,omitempty"`
	// Fetched holds the facts of those sources that the bundle in force does not have.
	Fetched map[string]Fetched `json:"-"`
}

// PolicyText is one policy with the name that references use.
type PolicyText struct {
	Name string `json:"name"`
	File string `json:"file"` // for messages
	Text string `json:"text"`
	// Mode says what happens to accesses that the policy forbids; empty means Enforce.
	Mode Mode `json:"mode,omitempty"`
}

// Mode says what happens to an access that a policy forbids.
type Mode string

// The modes of a policy.
const (
	Enforce Mode = "Enforce" // it is denied
	Audit   Mode = "Audit"   // it is allowed and recorded
	Warn    Mode = "Warn"    // as Audit, with warnings to users
)

// Reference names a policy and gives values to its parameters.
type Reference struct {
	Policy    string            `json:"policy"`
	Arguments map[string]string `json:"arguments,omitempty"`
}

// Rule gives a policy to the conduits that match a path.
type Rule struct {
	Set      string             `json:"set"` // the conduits' name in a pipeline: "syse/documents"
	Kind     policy.ConduitKind `json:"kind"`
	Internal bool               `json:"internal,omitempty"` // between tasks of the pipeline, for cIsInternal
	Ingress  bool               `json:"ingress,omitempty"`  // files that the view links
	// Directory says that tasks get the files as a whole, independently of their names.
	Directory bool `json:"directory,omitempty"`
	// Type is the shape of their content; empty: none. Only the monitor writes what has one.
	Type string `json:"type,omitempty"`
	// Path may contain {name} within a segment, "*" as a segment and a final "**".
	Path string `json:"path"`
	// Policy is the policy; its arguments may contain {name} as well.
	Policy Reference `json:"policy"`
	// Choices are the policies that principals may choose instead, for one conduit each.
	Choices []Choice `json:"choices,omitempty"`
}

// Principal is a party that can authenticate.
type Principal struct {
	Name      string `json:"name"`
	PublicKey string `json:"publicKey"` // Ed25519, 64 hexadecimal digits
	Region    string `json:"region,omitempty"`
}

// ruleset is a bundle that is prepared for use. It is immutable except for the cache.
type ruleset struct {
	bundle     Bundle
	templates  map[string]*policy.Template
	modes      map[string]Mode   // of policies that are not enforced, by the name they were compiled under
	observed   *observation      // which facts about conduits their classes contain
	patterns   []pattern.Pattern // of bundle.Rules, in their order
	principals map[string]ed25519.PublicKey
	speaking   func() map[string]bool // the conduits of bundle.Facts
	logs       map[string]*content.Type
	// asksForConduits reports that a policy asks for conduits by their numbers.
	asksForConduits bool
}

// compileBundle checks a bundle for every possible error.
func compileBundle(bundle Bundle) (*ruleset, error) {
	r := &ruleset{
		bundle: bundle, templates: make(map[string]*policy.Template), modes: make(map[string]Mode),
		observed: newObservation(), principals: make(map[string]ed25519.PublicKey),
		logs:     logsOf(bundle.Rules),
		speaking: sync.OnceValue(func() map[string]bool { return speaking(bundle.Facts) }),
	}
	files := make(map[string]bool)
	for _, text := range bundle.Policies {
		if r.templates[text.Name] != nil {
			return nil, fmt.Errorf("policy %s is given twice; rename one", text.Name)
		}
		template, err := policy.CompileAccepted(text.File, []byte(text.Text))
		if err == nil {
			err = template.CheckSupplied()
		}
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", text.Name, err)
		}
		r.templates[text.Name] = template
		r.asksForConduits = r.asksForConduits || template.Dependencies().SpeaksOfConduits()
		if err := r.relax(text, files[text.File]); err != nil {
			return nil, err
		}
		files[text.File] = true
		r.observed.add(text.Name, template)
	}
	for _, fact := range bundle.Facts {
		if err := checkStated(fact); err != nil {
			return nil, err
		}
	}
	if err := r.checkElsewhere(bundle.Facts); err != nil {
		return nil, err
	}
	for _, rule := range bundle.Rules {
		p, err := r.checkRule(rule)
		if err != nil {
			return nil, fmt.Errorf("conduits %s: %w", rule.Set, err)
		}
		r.patterns = append(r.patterns, p)
		r.observed.addValues(rule.Policy)
		for _, choice := range rule.Choices {
			r.observed.addValues(choice.Policy)
		}
	}
	if err := pattern.CheckAmbiguity(r.patterns); err != nil {
		return nil, err
	}
	for _, principal := range bundle.Principals {
		key, err := knownfacts.PublicKey(principal.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("principal %s: %w", principal.Name, err)
		}
		r.principals[principal.Name] = key
	}
	return r, nil
}

// relax records a policy that is not enforced. A decision identifies the policy by the
// name that it was compiled under, so no other policy may have that name.
func (r *ruleset) relax(text PolicyText, shared bool) error {
	switch text.Mode {
	case "", Enforce:
		delete(r.modes, text.File)
		return nil
	case Audit, Warn:
		if shared {
			return fmt.Errorf("policy %s: another one is called %s in messages, too; with mode %s it needs a name of its own", text.Name, text.File, text.Mode)
		}
		r.modes[text.File] = text.Mode
		return nil
	}
	return fmt.Errorf("policy %s: mode %q is unknown; use Enforce, Audit or Warn", text.Name, text.Mode)
}

func (r *ruleset) checkRule(rule Rule) (pattern.Pattern, error) {
	p, err := pattern.Parse(rule.Path)
	if err != nil {
		return pattern.Pattern{}, err
	}
	template := r.templates[rule.Policy.Policy]
	if template == nil {
		return pattern.Pattern{}, fmt.Errorf("path %s: policy %q does not exist; the bundle has %s", rule.Path,
			rule.Policy.Policy, strings.Join(sortedKeys(r.templates), ", "))
	}
	if _, err := template.Bind(rule.Policy.Arguments); err != nil {
		return pattern.Pattern{}, fmt.Errorf("path %s: %w", rule.Path, err)
	}
	if err := r.checkChoices(p, rule); err != nil {
		return pattern.Pattern{}, err
	}
	return p, p.CheckReferences(rule.Policy.Arguments)
}

// hasHoles reports whether the policy of a rule depends on the conduit's name.
func (r Rule) hasHoles() bool {
	for _, value := range r.Policy.Arguments {
		if strings.Contains(value, "{") {
			return true
		}
	}
	return false
}

// ruleFor finds the policy of a conduit with this name, by the most specific rule.
// Without a rule there is no policy, and nobody has access.
func (r *ruleset) ruleFor(name string) (Rule, Reference, bool) {
	at, bound := pattern.MostSpecific(r.patterns, name)
	if at < 0 {
		return Rule{}, Reference{}, false
	}
	rule := r.bundle.Rules[at]
	return rule, Reference{rule.Policy.Policy, pattern.Fill(rule.Policy.Arguments, bound)}, true
}

// bind returns the policy that a reference names.
func (r *ruleset) bind(reference Reference) (*policy.Policy, error) {
	template := r.templates[reference.Policy]
	if template == nil {
		return nil, fmt.Errorf("policy %q does not exist", reference.Policy)
	}
	return template.Bind(reference.Arguments)
}

// factChange returns the facts of the bundles themselves that are removed and added
// between two bundles. It leaves out facts in both: they may have been changed since.
func factChange(old, next []policy.Fact) (remove, add []policy.Fact) {
	index := func(facts []policy.Fact) map[string]bool {
		m := make(map[string]bool, len(facts))
		for _, fact := range facts {
			m[factKey(fact)] = true
		}
		return m
	}
	inOld, inNext := index(old), index(next)
	for _, fact := range old {
		if !inNext[factKey(fact)] {
			remove = append(remove, fact)
		}
	}
	for _, fact := range next {
		if !inOld[factKey(fact)] {
			add = append(add, fact)
		}
	}
	return remove, add
}

// speaking returns the conduits that say something.
func speaking(facts []policy.Fact) map[string]bool {
	conduits := make(map[string]bool)
	for _, fact := range facts {
		conduits[fact.Conduit] = true
	}
	return conduits
}

func factKey(fact policy.Fact) string {
	return string(append(encodeGroup(fact.Group()), encodeTuple(tupleOf(fact))...))
}

func (b Bundle) encode() ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode bundle: %w", err)
	}
	return text, nil
}

// clone keeps later changes by the caller out of the state.
func (b Bundle) clone() Bundle {
	b.Manifest = slices.Clone(b.Manifest)
	b.Policies, b.Rules = slices.Clone(b.Policies), slices.Clone(b.Rules)
	b.Principals, b.Facts = slices.Clone(b.Principals), slices.Clone(b.Facts)
	return b
}

// NameIn returns the catalog's name of a pipeline's conduits, or of its task: "syse/documents".
func NameIn(pipeline, name string) string { return pipeline + "/" + name }
