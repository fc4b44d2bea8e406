// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/wire"
)

// liveLiterals are literals with each predicate: one that holds of a write of f(7) to a conduit, and
// one that does not. NAME is the conduit's name, PRINCIPAL who writes, ID a document's number. cIdIs is
// not among them: a conduit that is written has no number.
var liveLiterals = []struct {
	name         string // of the predicate
	holds, fails string
	typed        bool // on typed conduits only
}{
	{"add", "add(X, 1, 2), eq(X, 3)", "add(X, 1, 2), eq(X, 4)", false},
	{"sub", "sub(X, 3, 1), eq(X, 2)", "sub(X, 3, 1), eq(X, 4)", false},
	{"mul", "mul(X, 2, 3), eq(X, 6)", "mul(X, 2, 3), eq(X, 4)", false},
	{"div", "div(X, 7, 2), eq(X, 3)", "div(X, 7, 2), eq(X, 4)", false},
	{"rem", "rem(X, 7, 2), eq(X, 1)", "rem(X, 7, 2), eq(X, 4)", false},
	{"concat", `concat(X, "a", "b"), eq(X, "ab")`, `concat(X, "a", "b"), eq(X, "c")`, false},
	{"vType", `sKeyIs(X), vType(X, string)`, `sKeyIs(X), vType(X, integer)`, false},
	{"eq", `sKeyIs(X), eq(X, PRINCIPAL)`, `sKeyIs(X), eq(X, "nobody")`, false},
	{"neq", `sKeyIs(X), neq(X, "nobody")`, `sKeyIs(X), neq(X, PRINCIPAL)`, false},
	{"lt", "timeIs(T), lt(T, 2200-01-01T00:00:00Z)", "timeIs(T), lt(T, 2000-01-01T00:00:00Z)", false},
	{"le", "timeIs(T), le(T, 2200-01-01T00:00:00Z)", "timeIs(T), le(T, 2000-01-01T00:00:00Z)", false},
	{"gt", "timeIs(T), gt(T, 2000-01-01T00:00:00Z)", "timeIs(T), gt(T, 2200-01-01T00:00:00Z)", false},
	{"ge", "timeIs(T), ge(T, 2000-01-01T00:00:00Z)", "timeIs(T), ge(T, 2200-01-01T00:00:00Z)", false},
	{"sKeyIs", "sKeyIs(PRINCIPAL)", `sKeyIs("nobody")`, false},
	{"timeIs", "timeIs(T), gt(T, 2000-01-01T00:00:00Z)", "timeIs(2000-01-01T00:00:00Z)", false},
	{"ipPrefix", `ipPrefix("10.0.0.1", "10.0.0.0/8")`, `ipPrefix("11.0.0.1", "10.0.0.0/8")`, false},
	{"cNameIs", "cNameIs(NAME)", `cNameIs("/elsewhere")`, false},
	{"cIdExists", "cIdExists(ID)", "cIdExists(999999)", false},
	{"cKindIs", "cKindIs(file)", "cKindIs(tuple)", false},
	{"cIsInternal", "cIsInternal()", "", false},
	{"hasPol", "hasPol(ID, P), isAsRestrictive(P.read, P.read)", "hasPol(999999, P), isAsRestrictive(P.read, P.read)", false},
	{"isAsRestrictive", "isAsRestrictive(read, this.read)", "isAsRestrictive(this.update, this.read)", false},
	{"says", `"list" says f(7)`, `"list" says f(8)`, false},
	{"each … says", `each in "list" says f(X) { lt(X, 8) }`, `each in "list" says f(X) { lt(X, 7) }`, false},
	{"says with an offset", `"/log/access"@0 says access("bob", "/open/1.txt", _)`,
		`"/log/access"@1 says access("bob", "/open/1.txt", _)`, false},
	{"each … says with offsets", `each in "/log/access"@O says access(_W, _D, _T) { lt(O, 1) }`,
		`each in "/log/access"@O says access(_W, _D, _T) { lt(O, 0) }`, false},
	{"cTypeIs", `cTypeIs("tuples")`, `cTypeIs("topics")`, true},
	{"cCurrLenIs", "cCurrLenIs(20)", "cCurrLenIs(0)", true},
	{"cNewLenIs", "cNewLenIs(25)", "cNewLenIs(5)", true},
	{"willsay", "cNameIs(C), C willsay f(7)", "cNameIs(C), C willsay f(8)", true},
	{"each … willsay", "cNameIs(C), each in C willsay f(X) { lt(X, 8) }", "cNameIs(C), each in C willsay f(X) { lt(X, 7) }", true},
	{"willsay with an offset", "cNameIs(C), C@20 willsay f(7)", "cNameIs(C), C@0 willsay f(7)", true},
}

// refusedEverywhere are uses that no conduit supplies.
var refusedEverywhere = []string{
	`each in "list"@O says f(X) { lt(O, X) }`, `"list"@O says f(O)`, `each in "list"@0..9 says f(X) { lt(X, 7) }`,
	`cNameIs(C), each in C@O says f(X) { lt(O, X) }`,
}

// sessionLiterals are about the connection of a user: one that holds, and one that does not.
var sessionLiterals = [][2]string{
	{`sIpIs(I), ipPrefix(I, "192.0.2.0/24")`, `sIpIs(I), ipPrefix(I, "10.0.0.0/8")`},
	{`sIpIs("192.0.2.1")`, `sIpIs("192.0.2.2")`},
	{`sRegionIs("de")`, `sRegionIs("fr")`},
}

// Each predicate that a monitor accepts in an update rule has its value when a task writes: a literal
// that holds lets the task write, and one that does not keeps it from it. What has no value is refused
// with the manifest.
func TestEveryPredicateLivesOrIsRefused(t *testing.T) {
	options := bareOptions(t)
	rules := &triedRules{}
	for _, literal := range liveLiterals {
		for _, one := range []struct {
			text  string
			holds bool
		}{{literal.holds, true}, {literal.fails, false}} {
			if one.text == "" {
				continue
			}
			rules.add(t, "notes", one.text, one.holds)
			if literal.typed {
				rules.expectRefused(t, "plain", one.text)
			} else {
				rules.add(t, "plain", one.text, one.holds)
			}
		}
	}
	for _, pair := range sessionLiterals {
		rules.add(t, "notes", pair[0], true)
		rules.add(t, "notes", pair[1], false)
	}
	for _, text := range refusedEverywhere {
		rules.expectRefused(t, "plain", text)
		rules.expectRefused(t, "notes", text)
	}
	for _, rule := range rules.all {
		file := filepath.Join(options.Data, rule.conduit)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Repeat("f(7)\n", 4)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	applyBare(t, m, rules.manifest(rules.all))
	if id, _ := m.state().ID(document); id != 1 {
		t.Fatalf("the document has the number %d", id)
	}
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	if got := bob.writes(logName, accessEntry("bob", document, time.Now()), 0); got != "" {
		t.Fatal(got)
	}
	for _, rule := range rules.all {
		var wrote bool
		if strings.HasPrefix(rule.conduit, "/notes/") {
			wrote = bob.writes(rule.conduit, "f(7)\n", 0) == ""
		} else {
			wrote = collectorOpens(t, m, rule.conduit, unix.O_WRONLY)
		}
		if wrote != rule.holds {
			t.Errorf("%s with %s: the task may write: %v", rule.conduit, rule.text, wrote)
		}
	}
}

type triedRule struct {
	conduit, text string
	holds         bool
}

// triedRules are update rules, each of a conduit of its own.
type triedRules struct{ all []triedRule }

func (r *triedRules) rule(set, text string, holds bool) triedRule {
	conduit := fmt.Sprintf("/%s/%d", set, len(r.all))
	principal := `"bob"`
	if set == "plain" {
		principal = `"task/collector"`
	}
	names := strings.NewReplacer("NAME", strconv.Quote(conduit), "PRINCIPAL", principal, "ID", "1")
	return triedRule{conduit, names.Replace(text), holds}
}

func (r *triedRules) add(t *testing.T, set, text string, holds bool) {
	t.Helper()
	rule := r.rule(set, text, holds)
	if err := r.check(rule); err != nil {
		t.Errorf("%s: %v", rule.text, err)
		return
	}
	r.all = append(r.all, rule)
}

func (r *triedRules) expectRefused(t *testing.T, set, text string) {
	t.Helper()
	rule := r.rule(set, text, false)
	if err := r.check(rule); err == nil || !strings.Contains(err.Error(), "cannot be enforced in the update rule") {
		t.Errorf("%s with %s: %v", rule.conduit, rule.text, err)
	}
}

func (r *triedRules) check(rule triedRule) error {
	_, err := manifest.Parse(manifest.Source{Name: "tried.yaml", Text: r.manifest([]triedRule{rule})}).Bundle()
	return err
}

// manifest binds each rule to its conduit: one that bob's taint may flow to.
func (r *triedRules) manifest(rules []triedRule) string {
	text := pipelinetest.Typed + `---
apiVersion: shai.dev/v1alpha1
kind: FactSource
metadata: {name: list}
spec: {inline: [{conduit: list, says: f, tuples: [[7]]}]}
`
	paths := map[string]string{}
	for i, rule := range rules {
		text += fmt.Sprintf(`---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: tried-%d}
spec:
  text: |
    read :- sKeyIs("bob"), sRegionIs("de").
    update :- %s.
`, i, rule.text)
		set := strings.Split(rule.conduit, "/")[1]
		paths[set] += fmt.Sprintf("        - {path: %s, policy: {name: tried-%d}}\n", rule.conduit, i)
	}
	for set, lines := range paths {
		own := "        - {path: /" + set + "/all, policy: {name: free}}\n"
		text = strings.Replace(text, own, own+lines, 1)
	}
	return text
}
