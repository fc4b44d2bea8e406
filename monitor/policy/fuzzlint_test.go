// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"strings"
	"testing"
)

// FuzzLint examines two files together, which may include each other: no panic, and every finding has
// a place in its file, an end behind it, a described code, and says something.
func FuzzLint(f *testing.F) {
	seeds(f)
	for _, text := range []string{
		"policy a(x) includes b(x), library/friends(x) { }\x00policy b(y) includes a(y) { read :- sKeyIs(y). }",
		"policy a includes b { }\x00policy b { read :- lt(1, \"x\"), sKeyIs(_K), F says t(Q). }",
		"policy a(cKindIs) includes c(1, \"\", 2027-01-01T00:00:00Z) { }\x00policy c(a: integer, file, z: time) { update :- cKindIs(file), eq(a, z). }",
	} {
		f.Add([]byte(text))
	}
	described := map[Code]bool{}
	for _, info := range codes {
		described[info.Code] = true
	}
	f.Fuzz(func(t *testing.T, both []byte) {
		first, second, _ := strings.Cut(string(both), "\x00")
		texts := map[string]string{"a.pol": first, "b.pol": second}
		var files []*File
		for _, name := range []string{"a.pol", "b.pol"} {
			file, mistakes := ParseAll(name, []byte(texts[name]))
			if len(mistakes) == 0 {
				files = append(files, file)
			}
		}
		for _, d := range Lint(surroundings(), files...) {
			lines := strings.Count(texts[d.File], "\n") + 1
			if d.Line < 1 || d.Line > lines || d.Column < 1 || d.EndLine < d.Line || d.EndLine > lines ||
				d.EndLine == d.Line && d.EndColumn < d.Column || !described[d.Code] || d.Message == "" {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// FuzzFormat checks that a text means the same after it was formatted, and that formatting it again
// changes nothing.
func FuzzFormat(f *testing.F) {
	seeds(f)
	f.Add([]byte("policy a(x, y: time) includes library/friends(x), library/expiry(y) { # why\n read :- sKeyIs(_Somebody). }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, mistakes := ParseAll("f", text)
		if len(mistakes) > 0 || len(text) > MaxText/4 {
			return
		}
		formatted := file.Format()
		again, err := Parse("f", formatted)
		if err != nil {
			t.Fatalf("what was formatted does not parse: %v\n%s", err, formatted)
		}
		if twice := again.Format(); string(twice) != string(formatted) {
			t.Fatalf("formatted again it is\n%s\nbefore\n%s", twice, formatted)
		}
		before, err := file.Compile()
		if err != nil {
			return
		}
		after, err := again.Compile()
		if err != nil || len(after) != len(before) {
			t.Fatalf("what was formatted does not compile: %v\n%s", err, formatted)
		}
		for i := range before {
			if boundIdentity(t, before[i]) != boundIdentity(t, after[i]) {
				t.Fatalf("formatted it is another policy:\n%s", formatted)
			}
		}
	})
}

// boundIdentity is that of a policy with one value for all parameters of a type.
func boundIdentity(t *testing.T, template *Template) ID {
	t.Helper()
	values := make([]string, len(template.parameters))
	for i, kind := range template.types {
		values[i] = map[ValueKind]string{StringValue: "alice", IntegerValue: "7",
			TimeValue: "2027-01-01T00:00:00Z"}[kind]
	}
	return mustBindTemplate(t, template, values...).ID()
}
