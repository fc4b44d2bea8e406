// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// surroundings of the tests: friends, and blacklists of regions.
func surroundings() Surroundings {
	return Surroundings{
		Relations: map[string]Relation{
			"friend":  {"friend", "FactSource friends", []Argument{{"name", StringValue}}},
			"blocked": {"blocked", "FactSource lists", []Argument{{"conduit", StringValue}, {"since", TimeValue}}},
			"note":    {"note", "FactSource lists", []Argument{{"", Wildcard}}},
		},
		Complete: true,
		Speaks: func(conduit string, whole bool) bool {
			return strings.HasPrefix(conduit, "blacklist/") || !whole && strings.HasPrefix("blacklist/", conduit)
		},
		Tasks: []string{"count", "indexer"}, Principals: []string{"indexer"},
	}
}

// Each diagnostic of a text, as severity, code, range and message.
func TestLint(t *testing.T) {
	tests := []struct{ text, want string }{
		{`read :- sKeyIs(K), concat(F, "friends/", K), F says friend(Q).`,
			"error variable-used-once 1:60-1:61 variable Q is used once, so it restricts nothing; " +
				"if any value will do, write _Q or _; otherwise use Q in the literal that it was meant for"},
		{`read :- sKeyIs(K), concat(F, "friends/", K), F says friend(_Q).`, ""},
		{`read :- sKeyIs(K), concat(F, "friends/", K), F says friend(_).`, ""},
		{`read :- sKeyIs(_q).`, "error syntax 1:16-1:18 the name of an unused variable is wrong: `_q`, expected `_` alone, or `_` and a capital as in `_Reader`; "},
		{`read :- each in "blacklist/x" says note(X) { sKeyIs("a") }.`,
			"error variable-used-once 1:41-1:42 variable X is used once, so it restricts nothing; " +
				"if any value will do, write _X or _; otherwise use X in the literal that it was meant for"},
		{`policy p(owner, other) { read :- sKeyIs(owner). }`,
			"warning unused-parameter 1:17-1:22 parameter other is not used; use it in a clause, or remove it"},
		{`policy p(owner) includes library/private(owner) { }`, ""},
		{`read :- sKeyIs(K), timeIs(K).`,
			"warning never-equal 1:20-1:29 K is a time here, and a string by what else the clause says: that is never so; compare values of one type"},
		{`read :- sKeyIs(K), timeIs(T), eq(K, T).`,
			"warning never-equal 1:31-1:39 eq(K, T) never holds: K is a string, and T is a time; compare values of one type"},
		{`read :- timeIs(T), lt(T, "2027-01-01").`,
			"warning never-equal 1:20-1:39 lt(T, \"2027-01-01\") never holds: T is a time, and \"2027-01-01\" is a string; compare values of one type"},
		{`read :- sRegionIs(R), neq(R, 5).`,
			"warning never-equal 1:23-1:32 neq(R, 5) always holds: R is a string, and 5 is an integer; compare values of one type"},
		{`policy p(end: time) { read :- sRegionIs(R), neq(R, end). }`,
			"warning never-equal 1:45-1:56 neq(R, parameter end) always holds: R is a string, and parameter end is a time; compare values of one type"},
		{`read :- each in "blacklist/x" says blocked(D, S) { neq(D, S) }.`,
			"warning never-equal 1:52-1:61 neq(D, S) always holds: D is a string, and S is a time; compare values of one type"},
		{`read :- sKeyIs(K), "x" says friend(K, 5).`,
			"error relation 1:20-1:41 relation friend has 2 arguments here; FactSource friends declares friend(name: string); give it as many arguments as facts have"},
		{`read :- "x" says friend(5).`,
			"error relation 1:9-1:27 argument 1 of relation friend is an integer here; FactSource friends declares friend(name: string); compare it with a value of the declared type"},
		{`policy p(end: time) { read :- "x" says friend(end). }`,
			"error relation 1:31-1:51 argument 1 of relation friend is a time here; FactSource friends declares friend(name: string); compare it with a value of the declared type"},
		{`read :- "x" says note(5), "x" says note(this).`, ""},
		{`read :- sKeyIs(K), "x" says frend(K).`,
			"warning undeclared-relation 1:20-1:37 no source of facts declares relation frend; did you mean friend?"},
		{`read :- sKeyIs(count).`,
			"error unknown-name 1:16-1:21 unknown name `count`, expected a declared parameter; a principal stands in double quotes, \"count\"; a task without a user is \"task/count\""},
		{`policy p(output) { read :- sKeyIs("a"), cKindIs(output). }`,
			"error ambiguous-name 1:49-1:55 `output` is a parameter of the policy, and a word that cKindIs knows, expected one meaning; rename the parameter, or write \"output\" for the word"},
		{`policy p(output) { read :- sKeyIs(output), cKindIs("output"). }`, ""},
		{"policy p(output) includes k(output) { }\npolicy k(kind) { read :- sKeyIs(\"a\"), cKindIs(kind). }",
			"error ambiguous-name 1:29-1:35 `output` is a parameter of the policy, and a word that cKindIs knows, expected one meaning; rename the parameter, or write \"output\" for the word"},
		{"policy p(output) includes m(output) { }\npolicy m(kind) includes k(kind) { }\n" +
			"policy k(kind) { read :- sKeyIs(\"a\"), cKindIs(kind). }",
			"error ambiguous-name 1:29-1:35 `output` is a parameter of the policy, and a word that cKindIs knows, expected one meaning; rename the parameter, or write \"output\" for the word"},
		{`policy p(output) includes library/private(output) { }`, ""},
		{`policy p(kind) { read :- sKeyIs("a"), cKindIs(kind). }`, ""},
		{`update :- sKeyIs("count"). read :- sKeyIs("indexer").`,
			"warning task-name 1:11-1:26 \"count\" is a task; a task without a user is the principal \"task/count\"; write sKeyIs(\"task/count\")"},
		{`read :- sKeyIs("a"), cKindIs(file), cKindIs(pipe).`,
			"warning never-holds 1:1-1:51 the clause can never hold; remove it, or correct the literals that contradict each other"},
		{`read :- timeIs(T), lt(T, 2027-01-01T00:00:00Z), gt(T, 2027-01-01T00:00:00Z).`,
			"warning never-holds 1:1-1:77 the clause can never hold; remove it, or correct the literals that contradict each other"},
		{`read :- timeIs(T), le(T, 2027-01-01T00:00:00Z), ge(T, 2027-01-01T00:00:00Z).`, ""},
		{`declassify :- isAsRestrictive(read, this.read) until cKindIs(file), cKindIs(pipe).`,
			"warning never-holds 1:54-1:82 the exit can never be taken; remove it, or correct the literals that contradict each other"},
		{"read :- sKeyIs(K), sRegionIs(\"de\"), \"x\" says note(K).\nread :- \"x\" says note(N), sRegionIs(\"de\"), sKeyIs(N).",
			"warning duplicate-clause 2:1-2:54 the clause says the same as the one on line 1; remove it, or correct what should be different"},
		{"declassify :- true.\ndeclassify :- true.",
			"warning duplicate-clause 2:1-2:20 the clause says the same as the one on line 1; remove it, or correct what should be different"},
		{"\ufeffread :- true.",
			"error syntax 1:1-1:4 unexpected character '\\ufeff'; it is a byte order mark: save the file as UTF-8 without one"},
		{"\xff\xfer\x00e\x00", "error syntax 1:1-1:1 the text is UTF-16; save the file as UTF-8"},
		{"\x00r\x00e\x00a", "error syntax 1:1-1:1 the text is UTF-16; save the file as UTF-8"},
		{`write :- sKeyIs("a").`, "error syntax 1:1-1:6 unexpected `write`, expected a rule: `read`, `update` or `declassify`; who may write says update"},
		{`policy p { deny :- sKeyIs("a"). }`, "error syntax 1:12-1:16 unexpected `deny`, expected a rule: `read`, `update` or `declassify`; " + nothingDenies},
		{`policy p(write) { read :- sKeyIs(K), write says note(K). }`, ""},
		{`read :- sKeyIs("a"). declassify :- true.`,
			"warning read-not-kept 1:22-1:41 the read rule restricts nobody: the declassify rule does not keep it, so tasks may read the data for others, too; " +
				"write isAsRestrictive(read, this.read), perhaps with until, or say that anybody may read: read :- true"},
		{`policy p(owner) includes library/private(owner) { declassify :- true. }`,
			"warning read-not-kept 1:51-1:70 the read rule restricts nobody: the declassify rule does not keep it, so tasks may read the data for others, too; " +
				"write isAsRestrictive(read, this.read), perhaps with until, or say that anybody may read: read :- true"},
		{`read :- sKeyIs("a"). update :- sKeyIs("b"). declassify :- isAsRestrictive(read, this.update).`,
			"warning read-not-kept 1:45-1:94 the read rule restricts nobody: the declassify rule does not keep it, so tasks may read the data for others, too; " +
				"write isAsRestrictive(read, this.read), perhaps with until, or say that anybody may read: read :- true"},
		{`read :- true. declassify :- true.`, ""},
		{`read :- sKeyIs("a"). declassify :- isAsRestrictive(read, this.read), isAsRestrictive(read, this.update).`, ""},
		{`read :- each in "blacklst" says note(X) { neq(X, this) }.`,
			"warning undeclared-conduit 1:9-1:57 no source of facts speaks for conduit \"blacklst\", so the list is empty and each holds for everybody; correct the conduit's name, or declare it in a FactSource"},
		{`read :- sRegionIs(R), concat(L, "blacklst/", R), each in L says note(X) { neq(X, this) }.`,
			"warning undeclared-conduit 1:50-1:89 no source of facts speaks for conduit \"blacklst/…\", so the list is empty and each holds for everybody; correct the conduit's name, or declare it in a FactSource"},
		{`read :- sRegionIs(R), concat(L, "blacklist/", R), each in L says note(X) { neq(X, this) }.`, ""},
		{`read :- cNewLenIs(1).`,
			"error unsupplied 1:9-1:21 `cNewLenIs` cannot be enforced in the read rule: whoever reads has no write that it could be about; " +
				"move it to the update rule of the conduit that is written, or to an exit (`until`)"},
	}
	for _, test := range tests {
		if got := shown(lintText("t.pol", []byte(test.text), surroundings())); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

// lintText examines one file.
func lintText(name string, text []byte, around Surroundings) []Diagnostic {
	file, mistakes := ParseAll(name, text)
	if len(mistakes) > 0 {
		return mistakes.Diagnostics()
	}
	return Lint(around, file)
}

func shown(all []Diagnostic) string {
	var lines []string
	for _, d := range all {
		lines = append(lines, fmt.Sprintf("%s %s %d:%d-%d:%d %s; %s", d.Severity, d.Code, d.Line, d.Column, d.EndLine,
			d.EndColumn, d.Message, d.Remedy))
	}
	return strings.Join(lines, "\n")
}

// What other languages write gets the form that this one has.
func TestForeignOperatorsGetAHint(t *testing.T) {
	tests := map[string]string{
		`read :- sKeyIs(K), K = "alice".`:                      "1:22: unexpected `=`, expected `says` or `willsay` after the conduit; write eq(X, Y), or use one variable in both places",
		`read :- sKeyIs(K), K == "alice".`:                     "1:22: unexpected `==`, expected `says` or `willsay` after the conduit; write eq(X, Y), or use one variable in both places",
		`read :- sKeyIs(K), K != "bob".`:                       "1:22: unexpected `!=`, expected `says` or `willsay` after the conduit; write neq(X, Y)",
		`read :- timeIs(T), T <= 5.`:                           "1:22: unexpected `<=`, expected `says` or `willsay` after the conduit; write le(X, Y)",
		`read :- sKeyIs("a") or sKeyIs("b").`:                  "1:21: unexpected `or`, expected `,` and another literal, or `.` at the clause's end; \"or\" is another clause with the same head",
		`read :- sKeyIs("a") || sKeyIs("b").`:                  "1:21: unexpected `||`, expected `,` and another literal, or `.` at the clause's end; \"or\" is another clause with the same head",
		`read :- sKeyIs("a") && sRegionIs("b").`:               "1:21: unexpected `&&`, expected `,` and another literal, or `.` at the clause's end; a comma is \"and\"",
		`read :- sKeyIs("a") and sRegionIs("b").`:              "1:21: unexpected `and`, expected `,` and another literal, or `.` at the clause's end; a comma is \"and\"",
		`read :- sKeyIs("a"); sKeyIs("b").`:                    "1:20: unexpected `;`, expected `,` and another literal, or `.` at the clause's end; a comma is \"and\", another clause with the same head is \"or\", and a full stop ends a clause",
		`read :- not sKeyIs("bob").`:                           "1:9: unexpected `not`, expected a predicate such as `sKeyIs(K)`, or `C says t(X)`; " + negationHint,
		`read :- not(sKeyIs("bob")).`:                          "1:9: unexpected `not`, expected a predicate such as `sKeyIs(K)`, or `C says t(X)`; " + negationHint,
		`read :- !sKeyIs("bob").`:                              "1:9: unexpected `!`, expected a predicate such as `sKeyIs(K)`, or `C says t(X)`; " + negationHint,
		`read :- "l" says age(N), add(M, N + 1, 2), eq(M, 3).`: "1:35: unexpected `+`, expected `,` and another argument, or `)`; write add(X, Y, Z): X is Y plus Z",
	}
	for text, want := range tests {
		_, err := CompileText("t.pol", []byte(text))
		if err == nil || strings.TrimPrefix(err.Error(), "t.pol:") != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// A text that was accepted before variables had to be used twice keeps its meaning.
func TestAcceptedTextsKeepTheirMeaning(t *testing.T) {
	former, err := CompileAccepted("t.pol", []byte(`read :- "friends/alice" says friend(Q).`))
	if err != nil {
		t.Fatal(err)
	}
	now := mustCompile(t, `read :- "friends/alice" says friend(_Q).`)
	if mustBindTemplate(t, former).ID() != mustBindTemplate(t, now).ID() {
		t.Error("a variable that is used once does not mean what _ means")
	}
}

// Every code that diagnostics carry is described, once.
func TestEveryCodeIsDescribed(t *testing.T) {
	var names []Code
	for _, info := range codes {
		if info.About == "" || info.Severity == "" || slices.Contains(names, info.Code) {
			t.Errorf("code %q has no description of its own", info.Code)
		}
		names = append(names, info.Code)
	}
}

// The manual's table has each code with its severity.
func TestCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) == 3 && (cells[1] == "error" || cells[1] == "warning") {
			for _, code := range strings.Split(strings.TrimPrefix(cells[0], "| "), ", ") {
				documented[strings.Trim(code, "`")] = cells[1]
			}
		}
	}
	for _, info := range codes {
		if documented[string(info.Code)] != string(info.Severity) {
			t.Errorf("docs/policies.md calls %s %q, want %s", info.Code, documented[string(info.Code)], info.Severity)
		}
		delete(documented, string(info.Code))
	}
	if len(documented) > 0 {
		t.Errorf("docs/policies.md has codes that do not exist: %v", documented)
	}
}

// The library has no findings of its own, apart from policies that no monitor supplies.
func TestLibraryIsClean(t *testing.T) {
	for _, template := range Library() {
		for _, d := range template.diagnose(Surroundings{}) {
			t.Errorf("%s: %s", template.Name(), shown([]Diagnostic{d}))
		}
	}
}
