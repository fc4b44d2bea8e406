// SPDX-License-Identifier: BSD-2-Clause

package policytest

import (
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// A test file finds its policy by its name, and reads everything it names.
func TestSuitesReadWhatTheyName(t *testing.T) {
	directory := write(t, map[string]string{
		"a.pol":          `read :- "list" says member(M), sKeyIs(M).`,
		"deep/list.json": `{"conduit": "list", "says": "member", "tuples": [["alice"]]}`,
		"a_test.yaml":    "factFiles: [deep/list.json]\ntests:\n  - {name: one, principal: alice, expect: allowed}\n",
	})
	files, err := Find(directory)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	suite, err := ReadSuite(files[0])
	if err != nil {
		t.Fatal(err)
	}
	outcomes, coverage := suite.Run()
	if len(outcomes) != 1 || !outcomes[0].Passed || len(coverage) != 1 || len(coverage[0].Decides) != 1 {
		t.Errorf("%+v, %+v", outcomes, coverage)
	}
	want := []string{files[0], filepath.Join(directory, "a.pol"), filepath.Join(directory, "deep/list.json")}
	if diff := cmp.Diff(want, suite.Reads); diff != "" {
		t.Error(diff)
	}
}

// Every operation, and every property of a session and a conduit, reaches the policy.
func TestQuestionsSayEverything(t *testing.T) {
	policies := map[string]string{
		"principal": `read :- sKeyIs("alice").`,
		"region":    `read :- sRegionIs("de").`,
		"address":   `read :- sIpIs(A), ipPrefix(A, "10.0.0.0/8").`,
		"time":      `read :- timeIs(T), lt(T, 2027-01-01T00:00:00Z).`,
		"kind":      `update :- cKindIs(tuple).`,
		"type":      `update :- cTypeIs("topics").`,
		"length":    `update :- cCurrLenIs(20), cNewLenIs(40).`,
		"name":      `update :- cNameIs("/x"), cIdIs(7), cIsInternal().`,
		"content":   `update :- each in this willsay topic(T) { eq(T, "cats") }, this willsay topic(_).`,
		"derive":    `declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).`,
	}
	for _, test := range []struct{ policy, with, without string }{
		{"principal", "principal: alice", "principal: bob"},
		{"region", "region: de", "region: us"},
		{"address", "address: 10.1.2.3", "address: 11.1.2.3"},
		{"time", `time: "2026-01-01T00:00:00Z"`, `time: "2028-01-01T00:00:00Z"`},
		{"kind", "operation: update, conduit: {kind: tuple}", "operation: update"},
		{"type", "operation: update, conduit: {type: topics}", "operation: update"},
		{"length", "operation: update, conduit: {length: 20}, content: {says: [], length: 40}",
			"operation: update, conduit: {length: 19}, content: {says: [], length: 40}"},
		{"name", "operation: update, conduit: {name: /x, id: 7, internal: true}", "operation: update, conduit: {name: /x}"},
		{"content", "operation: update, content: {says: [{relation: topic, tuples: [[cats]]}]}",
			"operation: update, content: {says: [{relation: topic, tuples: [[cats], [dogs]]}]}"},
		{"derive", "operation: derive, to: {kind: channel}", "operation: derive, to: {kind: pipe}"},
	} {
		for expect, flags := range map[string]string{"allowed": test.with, "denied": test.without} {
			directory := write(t, map[string]string{"p.pol": policies[test.policy],
				"p_test.yaml": "tests:\n  - {name: one, " + flags + ", expect: " + expect + "}\n"})
			suite, err := ReadSuite(filepath.Join(directory, "p_test.yaml"))
			if err != nil {
				t.Errorf("%s: %v", test.policy, err)
				continue
			}
			if outcomes, _ := suite.Run(); !outcomes[0].Passed {
				t.Errorf("%s with %s: %+v", test.policy, flags, outcomes[0])
			}
		}
	}
}

// What data hold, and other conduits, are bound to policies of the same file.
func TestOtherPoliciesOfAFile(t *testing.T) {
	directory := write(t, map[string]string{"two.pol": `
policy secret(owner) { read :- sKeyIs(owner). update :- sKeyIs(owner). }
policy open { read :- true. update :- hasPol(3, P), isAsRestrictive(P.read, this.read). }
`, "two_test.yaml": `
conduits: [{name: /three, id: 3, policy: open}]
tests:
  - {name: its own, policy: secret, arguments: {owner: alice}, holds: {policy: secret, arguments: {owner: alice}},
     principal: alice, operation: update, expect: allowed}
  - {name: of another, policy: secret, arguments: {owner: alice}, holds: {policy: secret, arguments: {owner: bob}},
     principal: alice, operation: update, expect: denied}
  - {name: with a policy, policy: open, operation: update, expect: allowed}
  - {name: to one with a policy, policy: secret, arguments: {owner: alice}, principal: alice, operation: derive,
     to: {policy: open}, expect: denied}
`})
	suite, err := ReadSuite(filepath.Join(directory, "two_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	outcomes, _ := suite.Run()
	for _, one := range outcomes {
		if !one.Passed {
			t.Errorf("%s: %s\n%s", one.Name, one.Wrong, one.Derivation)
		}
	}
}

// Every mistake of a file is reported, with its place.
func TestMistakesAreReportedTogether(t *testing.T) {
	directory := write(t, map[string]string{"p.pol": `policy p(owner) { read :- sKeyIs(owner). }`, "p_test.yaml": `
tests:
  - {name: a, arguments: {owner: x}, principle: bob, expect: allowed}
  - {name: a, arguments: {ownr: x}, expect: denied}
  - {name: b, arguments: {owner: x}, address: here, time: now, expect: denied}
  - {name: c, arguments: {owner: x}, policy: q, expect: denied}
  - {name: d, arguments: {owner: x}, to: {kind: pipe}, expect: allowed, reason: none}
`})
	_, err := ReadSuite(filepath.Join(directory, "p_test.yaml"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`:3:38: tests[0].principle: unknown field; did you mean "principal"?`,
		`:4:12: tests[1].name: the test "a" is there twice, first on line 3`, `argument "owner" is missing`,
		`"here" is no IP address`, `"now" is no time`, `there is no policy "q"`, "only derived data flow",
		"only a denial has a reason"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in\n%v", part, err)
		}
	}
}

// A clause that another one makes superfluous is not decisive, although it holds.
func TestCoverageIsAboutDecisions(t *testing.T) {
	directory := write(t, map[string]string{"p.pol": `read :- sKeyIs("alice").
read :- sKeyIs(_).
`, "p_test.yaml": "tests: [{name: one, principal: alice, expect: allowed}]\n"})
	suite, err := ReadSuite(filepath.Join(directory, "p_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, coverage := suite.Run()
	for _, clause := range coverage {
		if len(clause.Decides) > 0 {
			t.Errorf("line %d is decisive by %v", clause.Line, clause.Decides)
		}
	}
}

func TestJUnit(t *testing.T) {
	text, err := JUnit([]Outcome{{File: "a_test.yaml", Line: 3, Name: "x < y", Passed: true},
		{File: "a_test.yaml", Line: 4, Name: "z", Wrong: "expected allowed, got denied",
			Derivation: &policy.Derivation{Text: "read & write"}}, {File: "b_test.yaml", Name: "z", Passed: true}})
	if err != nil {
		t.Fatal(err)
	}
	var read junitSuites
	if err := xml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Suites) != 2 || read.Suites[0].Failures != 1 || read.Suites[0].Tests != 2 ||
		read.Suites[0].Cases[0].Name != "x < y" || !strings.Contains(read.Suites[0].Cases[1].Failure.Text, "read & write") {
		t.Errorf("%s", text)
	}
}

// What is wrong in the arguments of all tests is reported once, at them.
func TestArgumentsOfAllTestsAreReportedOnce(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "p_test.yaml")
	for name, text := range map[string]string{
		"p.pol":       "policy p(owner) { read :- sKeyIs(owner). }\n",
		"p_test.yaml": "arguments: {ower: alice}\ntests:\n  - {name: a, expect: denied}\n  - {name: b, expect: denied}\n",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := ReadSuite(path)
	var found manifest.Errors
	if !errors.As(err, &found) || len(found) != 1 || found[0].Position.Line != 1 {
		t.Errorf("%v, want one mistake in line 1", err)
	}
}
