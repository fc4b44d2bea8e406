// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"strings"
	"testing"
)

// Every mistake is reported with its place, what is wrong, and a remedy.
func TestMistakes(t *testing.T) {
	tests := []struct{ text, want string }{
		{`read :- sKeyis(K).`, "1:9: unknown predicate `sKeyis`; did you mean sKeyIs?"},
		{`read :- skeyIs(K).`, "1:9: unknown predicate `skeyIs`; did you mean sKeyIs?"},
		{`read :- sRegionsIs(K).`, "1:9: unknown predicate `sRegionsIs`; did you mean sRegionIs?"},
		{`read :- friend(K).`, "1:9: unknown predicate `friend`; if it is a fact, say whose: `\"conduit\" says friend(…)`"},
		{"read :- sKeyIs(K),\n  \"l\" say f(K).",
			"2:7: unexpected `say`, expected `says` or `willsay` after the conduit; did you mean says or willsay?"},
		{`read : sKeyIs(K).`, "1:6: unexpected `:`, expected `:-` after read"},
		{`read :- sKeyIs(K)`, "1:18: unexpected end of text, expected `,` and another literal, or `.` at the clause's end"},
		{`read :- sRegionIs(a).`, "1:19: unknown name `a`, expected a declared parameter; strings stand in double quotes, variables begin with a capital"},
		{`policy p(owner) { read :- sKeyIs(owne). }`,
			"1:34: unknown name `owne`, expected a declared parameter; did you mean owner?"},
		{`rad :- true.`, "1:1: unexpected `rad`, expected a rule: `read`, `update` or `declassify`; did you mean read?"},
		{`read :- lt(X, 5).`, "1:9: variable X is not bound; bind it with a positive predicate such as sKeyIs(X) or \"conduit\" says t(X)"},
		{`read :- F says friend(K), sKeyIs(K).`,
			"1:9: variable F, the conduit that says friend, is not bound; name the conduit, or bind F with concat or eq; otherwise anybody's tuples would count"},
		{`read :- "l" says f(X), lt(X, _).`, "1:24: `_` cannot be bound in lt, expected a variable that another literal binds"},
		{`read :- each in "l" says t(X) { lt(X, Y) }.`,
			"1:33: variable Y is not bound; bind it with a positive predicate such as sKeyIs(Y) or \"conduit\" says t(Y)"},
		{`read :- each in "l" says t(X) { lt(X, 5) }, sKeyIs(X).`, ""},
		{`read :- add(X, 1).`, "1:9: add has 2 arguments, expected 3"},
		{`read :- cKindIs(descripter).`, "1:17: cKindIs does not know `descripter`, expected one of [file tuple connection pipe descriptor output]; did you mean descriptor?"},
		{`read :- sKeyIs(K) until true.`, "1:19: `until` does not belong here; only declassify relaxes over time"},
		{`declassify :- sKeyIs(K).`, "1:15: a declassify rule cannot begin like this, expected `isAsRestrictive(read, this.read)`, perhaps with `until`, or `true`; a condition under which the restriction ends stands after `until`"},
		{`declassify :- isAsRestrictive(read, this.read). declassify :- isAsRestrictive(read, this.update).`,
			"1:49: alternative declassify clauses restrict to different rules; write one clause, or restrict every alternative to the same rule, once"},
		{`read :- ipPrefix("1.2.3.4", "x").`,
			`1:29: "x" is no address prefix, expected an address prefix such as "10.0.0.0/8"`},
		{`read :- timeIs(T), lt(T, 2027-13-01T00:00:00Z).`,
			"1:26: 2027-13-01T00:00:00Z is not a time, expected a time as in RFC 3339, such as 2027-01-31T00:00:00Z"},
		{`read :- timeIs(T), lt(T, 1500-01-01T00:00:00Z).`,
			"1:26: 1500-01-01T00:00:00Z is out of range, expected a time between the years 1678 and 2262"},
		{`read :- sKeyIs("a).`, `1:16: the string is not closed on its line; close it with "; a line break inside a string is written \n`},
		{`read :- sKeyIs("\q").`, `1:16: the string "\q" has an invalid escape; escapes are \" \\ \n \t \xHH \uHHHH`},
		{`read :- isAsRestrictive(read, "x").`,
			"1:31: \"x\" is no rule, expected a rule such as `read`, `this.read` or `P.read`"},
		{`read :- 7 says t(X).`, "1:9: 7 cannot say anything, expected a conduit's name"},
		{`read.`, "1:5: the clause has no body, expected `:-`; a rule that always holds is written `read :- true.`"},
		{``, "1:1: the text holds no policy, expected `policy` or a clause such as `read :- sKeyIs(\"alice\").`"},
		{`policy p(read) { }`, "1:10: the word read cannot name a parameter, expected another name"},
		{`policy p(a, a) { }`, "1:13: parameter a is declared twice; rename one of them"},
		{`policy p(a: date) { }`, "1:13: unexpected `date` as a parameter's type, expected `string`, `integer` or `time`"},
		{`policy p { read :- true. } policy p { }`,
			"1:35: policy p is declared twice, first on line 1; rename one of them"},
		{`policy p { read :- true.`, "1:25: the block of policy p is not closed, expected `}`"},
		{"updare :- true. }", "1:1: unexpected `updare`, expected a rule: `read`, `update` or `declassify`; did you mean update?"},
		{`}`, "1:1: unexpected `}`, expected a rule: `read`, `update` or `declassify`"},
		{"read :- \xff.", "1:9: byte 0xff is not UTF-8; save the file as UTF-8"},
	}
	for _, test := range tests {
		file, err := Parse("t.pol", []byte(test.text))
		if err == nil {
			_, err = file.Compile()
		}
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.text, err)
			}
			continue
		}
		var first *Error
		if !errors.As(err, &first) {
			t.Errorf("%s: no *Error in %v", test.text, err)
			continue
		}
		if first.Expected == "" && first.Hint == "" || first.Code == "" || first.To == (Position{}) {
			t.Errorf("%s: the error has no remedy, code or end: %+v", test.text, first)
		}
		if got := strings.TrimPrefix(first.Error(), "t.pol:"); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

// One mistake does not hide the next, and does not cause others.
func TestSeveralMistakes(t *testing.T) {
	_, err := Parse("t.pol", []byte("policy p {\n  read :- isAsRestrictive(read this.read), true.\n  read :- true.\n  upate :- true.\n}\npolicy q { read :- ; }\n"))
	var mistakes Errors
	if !errors.As(err, &mistakes) {
		t.Fatal(err)
	}
	var lines []int
	for _, mistake := range mistakes {
		lines = append(lines, mistake.Line)
	}
	if len(lines) < 3 || lines[0] != 2 || lines[1] != 4 || lines[2] != 6 {
		t.Errorf("mistakes on lines %v, want 2, 4 and 6:\n%v", lines, err)
	}
}

func TestBindMistakes(t *testing.T) {
	template := mustCompile(t, `policy expiry(end: time, owner) { read :- sKeyIs(owner), timeIs(T), lt(T, end). }`)
	tests := []struct {
		arguments map[string]string
		want      string
	}{
		{map[string]string{"end": "2027-01-01T00:00:00Z"}, `argument "owner" is missing`},
		{map[string]string{"end": "2027-01-01T00:00:00Z", "owner": "a", "onwer": "a"}, `there is no parameter "onwer"`},
		{map[string]string{"end": "tomorrow", "owner": "a"}, `argument end: "tomorrow" is not a time`},
		{map[string]string{"end": "tomorrow", "onwer": "a"}, `bind policy expiry: argument end: "tomorrow" is not a time as in RFC 3339 ` +
			`between 1678 and 2262, such as 2027-01-31T00:00:00Z; argument "owner" is missing: it takes (end, owner); ` +
			`there is no parameter "onwer": it takes (end, owner); did you mean owner?`},
		{map[string]string{"end": "2027-01-01T00:00:00Z", "owner": "a"}, ""},
	}
	for _, test := range tests {
		_, err := template.Bind(test.arguments)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.arguments, err, test.want)
		}
	}
}
