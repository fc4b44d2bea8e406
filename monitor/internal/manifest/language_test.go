// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// policyObject is a Policy with a text of one line.
func policyObject(name, text string) string {
	return fmt.Sprintf("---\napiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: %s}\nspec:\n  text: %q\n", name,
		text)
}

func factSource(name, spec string) string {
	return fmt.Sprintf("---\napiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: %s}\nspec: {%s}\n", name,
		spec)
}

// using is a pipeline with files under one policy.
func using(reference string) string {
	return "---\napiVersion: shai.dev/v1alpha1\nkind: Task\nmetadata: {name: reader}\n" +
		"spec: {command: [/bin/true], taint: {name: library/public}, reads: [documents]}\n" +
		"---\napiVersion: shai.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: p}\nspec:\n  tasks: [reader]\n  conduits:\n" +
		"    - {name: documents, kind: file, ingress: true, paths: [{path: \"/d/{owner}/**\", policy: " + reference + "}]}\n"
}

func reported(t *testing.T, text string) (Report, string) {
	t.Helper()
	report, err := Parse(Source{Name: "f", Text: text}).Report()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, one := range report.Errors {
		lines = append(lines, "error: "+one.Object()+": "+one.Field+": "+one.Message)
	}
	for _, one := range report.Warnings {
		if one.Code == Suspicious {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", one.Lint, one.Object(), one.Message))
		}
	}
	return report, strings.Join(lines, "\n")
}

const friendSource = `relations: [{name: friend, arguments: [{name: who}], conduits: ["friends/{user}"]}], ` +
	`inline: [{conduit: friends/alice, says: friend, tuples: [[bob]]}]`

// What is wrong with policies among facts, tasks and each other is reported where they stand.
func TestPoliciesAmongTheirSurroundings(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"used once", policyObject("a", `policy a { read :- sKeyIs(K). }`),
			"error: Policy a: spec.text: variable K is used once, so it restricts nothing"},
		{"fits the declaration", policyObject("a", `policy a { read :- sKeyIs(K), "friends/alice" says friend(K). }`) +
			factSource("s", friendSource), ""},
		{"another arity", policyObject("a", `policy a { read :- sKeyIs(K), "friends/alice" says friend(K, _). }`) +
			factSource("s", friendSource),
			"error: Policy a: spec.text: relation friend has 2 arguments here; FactSource s declares friend(who: string)"},
		{"an unknown relation", policyObject("a", `policy a { read :- sKeyIs(K), "friends/alice" says frend(K). }`) +
			factSource("s", friendSource),
			"undeclared-relation: Policy a: no source of facts declares relation frend"},
		{"an unknown relation, where a source says anything",
			policyObject("a", `policy a { read :- sKeyIs(K), "friends/alice" says frend(K). }`) +
				factSource("s", friendSource) + factSource("z", "inline: []"), ""},
		{"an unknown conduit", policyObject("a", `policy a { read :- each in "fiends/alice" says friend(K) { neq(K, "x") }. }`) +
			factSource("s", friendSource),
			"undeclared-conduit: Policy a: no source of facts speaks for conduit \"fiends/alice\", so the list is empty and each holds for everybody"},
		{"an unknown conduit, where a source does not name its own",
			policyObject("a", `policy a { read :- each in "fiends/alice" says friend(K) { neq(K, "x") }. }`) +
				factSource("s", friendSource) + factSource("z", "file: {path: /z}"), ""},
		{"an attribute of a principal", policyObject("a", `policy a { read :- sKeyIs(K), concat(P, "principals/", K), P says attribute("team", "red"). }`) +
			factSource("s", friendSource), ""},
		{"a task's name", policyObject("a", `policy a { update :- sKeyIs("reader"). }`) + using("{name: a}"),
			`task-name: Policy a: "reader" is a task; a task without a user is the principal "task/reader"`},
		{"declared twice", factSource("r", `inline: [], relations: [{name: friend, arguments: [{type: integer}]}]`) +
			factSource("s", friendSource),
			"error: FactSource s: spec.relations[0]: friend(who: string) is declared here, and friend(integer) by FactSource r"},
		{"facts that contradict", factSource("s", strings.Replace(friendSource, "[[bob]]", "[[bob], [7], [a, b]]", 1)),
			"error: FactSource s: spec.inline[0].tuples[1]: \"friends/alice\" says friend: 7 in the tuple (7) is an integer; spec.relations declares friend(who: string)\n" +
				"error: FactSource s: spec.inline[0].tuples[2]: \"friends/alice\" says friend: the tuple (\"a\", \"b\") has 2 values; spec.relations declares friend(who: string)"},
		{"facts that are not declared",
			factSource("s", strings.Replace(friendSource, "says: friend,", "says: enemy,", 1)),
			"error: FactSource s: spec.inline[0]: \"friends/alice\" says enemy: spec.relations does not declare relation enemy; add it there, or correct the fact"},
		{"included", policyObject("a", `policy a includes b-c("x"), library/private("y") { }`) +
			policyObject("b-c", `policy b-c(owner) { read :- sKeyIs(owner). }`), ""},
		{"not there to include", policyObject("a", `policy a includes b { }`) + policyObject("c", `policy c includes private("x") { }`),
			"error: Policy a: spec.text: there is no policy b to include\nerror: Policy c: spec.text: there is no policy private to include"},
		{"a cycle", policyObject("a", `policy a includes b { }`) + policyObject("b", `policy b includes a { }`),
			"error: Policy a: spec.text: policy b, which it includes, has errors\n" +
				"error: Policy b: spec.text: policy b includes itself: b includes a includes b"},
		{"of the library", using(`{name: library/friends, arguments: {owner: "{owner}"}}`), ""},
		{"of the library, without its argument", using(`{name: library/friends}`),
			`error: Pipeline p: spec.conduits[0].paths[0].policy.arguments: parameter "owner" of policy library/friends gets no value`},
		{"not of the library", using(`{name: library/fiends, arguments: {owner: "{owner}"}}`),
			`error: Pipeline p: spec.conduits[0].paths[0].policy.name: the standard library has no policy "library/fiends"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, got := reported(t, test.text); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A hyphen in a name is one in the text, too; an underscore, as it was written before, will do.
func TestNamesWithHyphens(t *testing.T) {
	for _, text := range []string{`policy of-friends { }`, `policy of_friends { }`, `update :- true.`} {
		if _, got := reported(t, policyObject("of-friends", text)); got != "" {
			t.Errorf("%s: %s", text, got)
		}
	}
	_, got := reported(t, policyObject("of-friends", `policy of-fiends { }`))
	if want := "error: Policy of-friends: spec.text: the text declares policy of-fiends; expected of-friends, after metadata.name"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// What has to be enforced has no includes, and the library's policies that are referred to.
func TestEnforcedPolicies(t *testing.T) {
	report, got := reported(t, policyObject("a", `policy a(owner) includes b(owner) { update :- sKeyIs("task/reader"). }`)+
		policyObject("b", `policy b(owner) { read :- sKeyIs(owner). }`)+using(`{name: a, arguments: {owner: "{owner}"}}`))
	if got != "" {
		t.Fatal(got)
	}
	texts := map[string]string{}
	for _, p := range report.Bundle.EnforcedPolicies() {
		texts[p.Metadata.Name] = p.Spec.Text
	}
	want := "policy a(owner) {\n  update :- sKeyIs(\"task/reader\").\n  read   :- sKeyIs(owner).\n}\n"
	if texts["a"] != want || !strings.Contains(texts["library/public"], "policy public {") || len(texts) != 3 {
		t.Errorf("got %q", texts)
	}
	resolved, err := report.Bundle.Resolve("p", nil)
	if err != nil || len(resolved.Policies) != 2 || resolved.Policies[0].Spec.Text != want ||
		resolved.Policies[1].Metadata.Name != "library/public" {
		t.Errorf("the pipeline has %+v, %v", resolved, err)
	}
	again, err := Restore(report.Bundle.Canonical())
	if err != nil || len(again.EnforcedPolicies()) != 3 {
		t.Errorf("restored: %v", err)
	}
}

// The text of a policy that includes others says by itself what it means, and nothing is kept of one
// that is too long. Policies of the library alone stay what their author wrote.
func TestComposedTexts(t *testing.T) {
	objects := policyObject("a", `policy a(owner) includes b(owner) { }`) +
		policyObject("b", `policy b(owner) includes c(owner) { }`) +
		policyObject("c", `policy c(owner) { read :- sKeyIs(owner). }`) +
		policyObject("d", `policy d(owner) includes library/private(owner) { }`) +
		policyObject("e", `policy e includes gone { }`)
	report, err := Parse(Source{Name: "f", Text: objects}).ReportComposed()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "policy a(owner) {\n  read :- sKeyIs(owner).\n}\n",
		"b": "policy b(owner) {\n  read :- sKeyIs(owner).\n}\n"}
	if !maps.Equal(report.Composed, want) {
		t.Errorf("got %q", report.Composed)
	}
	half := func(letter string) (text string) {
		for i := range 10 {
			text += fmt.Sprintf(`read :- sKeyIs("%d%s"). `, i, strings.Repeat(letter, maxComposed/20))
		}
		return text
	}
	long := policyObject("a", `policy a includes b { `+half("x")+`}`) + policyObject("b", `policy b { `+half("y")+`}`)
	report, err = Parse(Source{Name: "f", Text: long}).ReportComposed()
	if err != nil || len(report.Composed) != 0 || len(report.Errors) != 1 ||
		!strings.Contains(report.Errors[0].Message, "with what it includes") {
		t.Errorf("%d texts are kept, %v, %v", len(report.Composed), report.Errors, err)
	}
}

// A bundle that was stored before a variable had to be used twice is read, and means the same. The
// same manifests are refused when they are applied.
func TestStoredBundlesMayUseVariablesOnce(t *testing.T) {
	former := policyObject("a", `policy a { read :- sKeyIs(_K). }`)
	report, got := reported(t, former)
	if got != "" {
		t.Fatal(got)
	}
	stored := strings.ReplaceAll(string(report.Bundle.Canonical()), "_K", "K")
	if _, err := Restore([]byte(stored)); err != nil {
		t.Errorf("a monitor with this bundle would not start any more: %v", err)
	}
	if err := check(strings.ReplaceAll(former, "_K", "K")); err == nil {
		t.Error("a variable that is used once is accepted")
	}
}
