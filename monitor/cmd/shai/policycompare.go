// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/policytest"
	"shai.dev/monitor/policy"
)

// comparedPolicies is the result of shai policy compare.
type comparedPolicies struct {
	First  string `json:"first"`
	Second string `json:"second"`
	// AsRestrictive reports that it was shown: whatever the first allows, the second allows.
	AsRestrictive bool             `json:"asRestrictive"`
	Clauses       []comparedClause `json:"clauses"` // of the first policy's rules
	Derived       comparedDerived  `json:"derived"`
}

type comparedClause struct {
	Rule    string       `json:"rule"`
	Source  string       `json:"source"`
	Clause  string       `json:"clause"`
	Implied bool         `json:"implied"`
	Nearest string       `json:"nearest,omitempty"`
	OnlyIf  []string     `json:"onlyIf,omitempty"`
	Case    *comparedGap `json:"case,omitempty"`
}

// comparedGap is a case that the first policy allows and the second does not.
type comparedGap struct {
	Principal string     `json:"principal,omitempty"`
	Region    string     `json:"region,omitempty"`
	Address   string     `json:"address,omitempty"`
	Time      *time.Time `json:"time,omitempty"`
	Conduit   string     `json:"conduit"`
	Kind      string     `json:"kind,omitempty"`
	ID        int64      `json:"id,omitempty"`
	Type      string     `json:"type,omitempty"`
	Length    int64      `json:"length,omitempty"`    // in bytes, before the write
	NewLength int64      `json:"newLength,omitempty"` // after it
	Facts     []string   `json:"facts,omitempty"`
}

// comparedDerived says whether the first policy restricts derived data as much.
type comparedDerived struct {
	Implied bool     `json:"implied"`
	Reason  string   `json:"reason,omitempty"`
	OnlyIf  []string `json:"onlyIf,omitempty"`
}

// compareFlags are the command-line flags of shai policy compare.
type compareFlags struct {
	names     []string
	arguments []string
	facts     []string
	conduit   string
}

func (p *program) policyCompareCommand() *cobra.Command {
	var flags compareFlags
	command := &cobra.Command{
		Use:   "compare FIRST SECOND",
		Short: "Decide whether one policy is at least as restrictive as another",
		Long: `Decide whether the first policy is at least as restrictive as the second: whether the
second allows everybody whom the first allows, to read and to update, and whether the first
restricts derived data as much. Each of them is a policy file, or manifests. "FILE#NAME" is one
of several policies.

Of each clause that the second does not imply, the nearest literal is shown and, if one is
found, a case that the first allows and the second does not. The answer holds for all facts;
with --facts for these alone. It is never wrongly yes; it may be no although nothing is
allowed in addition (docs/policies.md says when). The exit code is 0 for yes and 3 for no.`,
		Example: `  shai policy compare stricter.pol friends.pol --argument owner=alice
  shai policy compare policies.yaml#private policies.yaml#friends --argument owner=alice --output json`,
		Args: takes("FIRST", "SECOND"),
		RunE: p.does(func(_ context.Context, arguments []string) error {
			flags.names = arguments
			return p.comparePolicies(flags)
		}),
	}
	f := command.Flags()
	f.StringArrayVar(&flags.arguments, "argument", nil,
		"NAME=VALUE for a parameter of either policy; may be repeated")
	f.StringArrayVar(&flags.facts, "facts", nil, "file of JSON lines: compare where these facts hold; may be repeated")
	f.StringVar(&flags.conduit, "conduit", "/the/conduit", "name of the conduit: this")
	return command
}

func (p *program) comparePolicies(flags compareFlags) error {
	arguments, err := argumentsOf(flags.arguments)
	if err != nil {
		return err
	}
	var pair [2]*policy.Policy
	used := map[string]bool{}
	for i, name := range flags.names {
		if pair[i], err = bindNamed(name, arguments, used); err != nil {
			return p.said(err)
		}
	}
	for name := range arguments {
		if !used[name] {
			return usage("--argument %s: neither policy has such a parameter", name)
		}
	}
	var state policy.State
	if len(flags.facts) > 0 {
		facts, err := factsOf(flags.facts)
		if err != nil {
			return err
		}
		if state, err = stateOf(facts); err != nil {
			return err
		}
	}
	result := compareBoth(pair[0], pair[1], flags.conduit, state)
	if err := p.print(result, func(w io.Writer) { printCompared(w, result) }); err != nil {
		return err
	}
	if !result.AsRestrictive {
		return errNo
	}
	return nil
}

// stateOf makes a state without conduits of facts.
func stateOf(facts []policy.Fact) (policy.State, error) {
	base := policy.NewFactBase()
	for _, fact := range facts {
		if _, err := base.Add(fact); err != nil {
			return nil, err
		}
	}
	return policy.StateOf(base, policy.NewConduitTable()), nil
}

// bindNamed binds the policy that FILE or FILE#NAME names with those of the arguments that it
// has.
func bindNamed(name string, arguments map[string]string, used map[string]bool) (*policy.Policy, error) {
	file, chosen, _ := strings.Cut(name, "#")
	policies, err := policytest.ReadPolicies(file)
	if err != nil {
		return nil, err
	}
	template, err := policies.Only(chosen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; write FILE#NAME", name, err)
	}
	own := map[string]string{}
	for _, parameter := range template.Parameters() {
		value, given := arguments[parameter]
		if !given {
			return nil, usage("%s: parameter %s has no value: give --argument %s=VALUE", name, parameter, parameter)
		}
		own[parameter], used[parameter] = value, true
	}
	return template.Bind(own)
}

func compareBoth(first, second *policy.Policy, conduit string, state policy.State) comparedPolicies {
	out := comparedPolicies{First: first.String(), Second: second.String(), AsRestrictive: true,
		Clauses: []comparedClause{}}
	for _, rule := range []struct {
		name  string
		rules [2]policy.Rule
	}{
		{"read", [2]policy.Rule{first.Read(conduit), second.Read(conduit)}},
		{"update", [2]policy.Rule{first.Update(conduit), second.Update(conduit)}},
	} {
		for _, one := range policy.CompareRules(rule.rules[0], rule.rules[1], state) {
			clause := comparedClause{Rule: rule.name, Source: one.Source, Clause: one.Text, Implied: one.Implied,
				Nearest: one.Nearest, OnlyIf: conditionTexts(one.Conditions), Case: gapOf(one.Witness)}
			out.AsRestrictive = out.AsRestrictive && one.Implied
			out.Clauses = append(out.Clauses, clause)
		}
	}
	out.Derived = compareDerived(first.Label(conduit), second.Label(conduit), state)
	out.AsRestrictive = out.AsRestrictive && out.Derived.Implied
	return out
}

// compareDerived compares what follows derived data. Without a state, an answer that rests on
// facts is none.
func compareDerived(first, second policy.Label, state policy.State) comparedDerived {
	everywhere := state == nil
	if everywhere {
		state = policy.StateOf(policy.NewFactBase(), policy.NewConduitTable())
	}
	decision := policy.AtLeast(first, second, state, policy.Environment{})
	out := comparedDerived{Implied: decision.Allowed && !(everywhere && len(decision.Conditions) > 0)}
	switch {
	case out.Implied:
		out.OnlyIf = conditionTexts(decision.Conditions)
	case decision.Allowed:
		out.Reason = "it depends on facts: give them with --facts"
	default:
		out.Reason = "derived data of the first are not restricted as long, or as much: " + decision.Reason
	}
	return out
}

func conditionTexts(conditions []policy.Condition) []string {
	var texts []string
	for _, condition := range conditions {
		texts = append(texts, condition.String())
	}
	return texts
}

func gapOf(w *policy.Witness) *comparedGap {
	if w == nil {
		return nil
	}
	gap := &comparedGap{Principal: w.Session.Principal, Region: w.Session.Region, Conduit: w.Target.Name,
		ID: w.Target.ID, Type: w.Target.Type, Length: w.Target.Length, NewLength: w.NewLength}
	if w.Session.IP.IsValid() {
		gap.Address = w.Session.IP.String()
	}
	if !w.Now.IsZero() {
		gap.Time = &w.Now
	}
	if w.Target.Kind != policy.UnknownConduit {
		gap.Kind = w.Target.Kind.String()
	}
	for _, fact := range w.Facts {
		gap.Facts = append(gap.Facts, fmt.Sprintf("%q says %s%s", fact.Conduit, fact.Relation,
			policy.NewTuple(fact.Arguments...)))
	}
	return gap
}

func (g comparedGap) String() string {
	who := either(g.Principal, "anybody, authenticated or not,")
	parts := []string{who}
	for _, part := range [][2]string{{"in region", g.Region}, {"at", g.Address}, {"writing to a", g.Kind},
		{"to a conduit of type", g.Type}, {"numbered", numbered(g.ID)}, {"with bytes before:", numbered(g.Length)},
		{"with bytes after:", numbered(g.NewLength)}} {
		if part[1] != "" {
			parts = append(parts, part[0]+" "+part[1])
		}
	}
	if g.Time != nil {
		parts = append(parts, "at "+g.Time.UTC().Format(time.RFC3339))
	}
	text := strings.Join(parts, " ")
	if len(g.Facts) > 0 {
		text += ", where " + strings.Join(g.Facts, ", ")
	}
	return text
}

// numbered writes a number of a case; 0 is not told.
func numbered(number int64) string {
	if number == 0 {
		return ""
	}
	return strconv.FormatInt(number, 10)
}

func printCompared(w io.Writer, c comparedPolicies) {
	answer := "yes: %s is at least as restrictive as %s\n"
	if !c.AsRestrictive {
		answer = "no: %s is not known to be as restrictive as %s\n"
	}
	fmt.Fprintf(w, answer, c.First, c.Second)
	for _, rule := range []string{"read", "update"} {
		if !slices.ContainsFunc(c.Clauses, func(one comparedClause) bool { return one.Rule == rule }) {
			fmt.Fprintf(w, "+ %s: the first allows nobody\n", rule)
		}
		for _, one := range c.Clauses {
			if one.Rule == rule {
				printComparedClause(w, one)
			}
		}
	}
	sign := map[bool]string{true: "+", false: "-"}[c.Derived.Implied]
	fmt.Fprintf(w, "%s derived data\n", sign)
	if c.Derived.Reason != "" {
		fmt.Fprintf(w, "    %s\n", printable(c.Derived.Reason))
	}
	printOnlyIf(w, c.Derived.OnlyIf)
}

func printComparedClause(w io.Writer, one comparedClause) {
	sign := map[bool]string{true: "+", false: "-"}[one.Implied]
	fmt.Fprintf(w, "%s %s: %s  [%s]\n", sign, one.Rule, printable(one.Clause), one.Source)
	if one.Nearest != "" {
		fmt.Fprintf(w, "    nearest: %s\n", printable(one.Nearest))
	}
	if one.Case != nil {
		fmt.Fprintf(w, "    only the first allows: %s\n", printable(one.Case.String()))
	}
	printOnlyIf(w, one.OnlyIf)
}

func printOnlyIf(w io.Writer, conditions []string) {
	for _, condition := range conditions {
		fmt.Fprintf(w, "    as long as %s\n", printable(condition))
	}
}
