// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"shai.dev/monitor/internal/factsource"
	"shai.dev/monitor/internal/languageserver"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// hostile are the inputs of the table in docs/policies.md, by their description there.
var hostile = map[string]func() error{
	"a text of more than 256 KiB":            policies("#" + strings.Repeat("a", policy.MaxText)),
	"257 clauses":                            policies(strings.Repeat("read :- true.\n", policy.MaxClauses+1)),
	"65 literals in a clause":                policies("read :- true" + strings.Repeat(", true", 64) + "."),
	"parentheses nine deep":                  policies("read :- (((((((((true)))))))))."),
	"17 arguments":                           policies(`read :- "c" says t(1` + strings.Repeat(", 1", policy.MaxArguments) + ")."),
	"more than 64 variables in a clause":     policies("read :- " + strings.Repeat(`"c" says t(_, _, _, _, _, _, _, _, _), `, 8) + "true."),
	"a string of more than 4 KiB":            policies(`read :- sKeyIs("` + strings.Repeat("a", policy.MaxString+1) + `").`),
	"a number of more than 64 bits":          policies("read :- cIdIs(9223372036854775808)."),
	"a time that no calendar has":            policies("read :- timeIs(2027-02-30T00:00:00Z)."),
	"a byte that is not UTF-8":               policies("read :- sKeyIs(\xff)."),
	"a string that is not closed":            policies("read :- sKeyIs(\"alice)."),
	"a block that is not closed":             policies("policy p { read :- true."),
	"a conduit that is anybody's":            policies(`read :- sKeyIs(K), F says friend(K).`),
	"a variable that is used once":           policies(`read :- sKeyIs(K), concat(F, "friends/", K), F says friend(Q).`),
	"a policy that includes itself":          policies("policy a includes b { }", "policy b includes a { }"),
	"a policy that includes nothing known":   policies("policy a includes friend(\"alice\") { }"),
	"a policy that two files declare":        policies("policy a includes b { }", "policy b { }", "policy b { }"),
	"an include without its argument":        policies("policy a includes library/friends { }"),
	"includes that double forty times":       policies(doubling(40)),
	"an editor's message of exabytes":        editor("Content-Length: 9223372036854775807\r\n\r\n{}"),
	"an editor's header that does not end":   editor("Content-Length: " + strings.Repeat("1", 1<<20)),
	"a policy in the name of the library":    policies("policy library/public { read :- true. }"),
	"aliases that make gigabytes of a page":  manifests(aliases()),
	"an object that is given twice":          manifests(object("Policy", "a", `text: "read :- true."`) + object("Policy", "a", `text: "read :- true."`)),
	"a reference to what is not there":       manifests(object("Task", "t", `command: [/bin/true], taint: {name: nobody}`)),
	"two declarations of a relation":         manifests(source("a", "string", "bob") + source("b", "integer", "7")),
	"an inline fact against its declaration": manifests(source("a", "string", "7")),
	"a relation that no policy can name":     manifests(inline("list", "bad relation!", "[a]")),
	"a network that is none":                 manifests(inline("regions", "prefix", `["300.0.0.0/8", de]`)),
	"a network in two regions":               manifests(inline("regions", "prefix", `["10.0.0.0/8", de], ["10.0.0.0/8", us]`)),
	"a public key that is none":              manifests(inline("population", "key", "[alice, zz]")),
	"a fact file that is no JSON":            facts("friend(alice, bob)\n"),
	"a fact file with another arity":         facts(`{"conduit": "c", "says": "friend", "tuples": [["bob", "carol"]]}`),
}

// policies are files of policies that are examined together.
func policies(texts ...string) func() error {
	return func() error {
		var files []*policy.File
		var all policy.Errors
		for i, text := range texts {
			file, mistakes := policy.ParseAll(fmt.Sprintf("%c.pol", 'a'+i), []byte(text))
			if all = append(all, mistakes...); len(mistakes) == 0 {
				files = append(files, file)
			}
		}
		if len(all) > 0 {
			return all
		}
		_, err := policy.CompileFiles(files...)
		return err
	}
}

// editor is what an editor sends to the language server.
func editor(sent string) func() error {
	return func() error {
		return languageserver.Serve(context.Background(), strings.NewReader(sent), unclosed{io.Discard})
	}
}

func manifests(text string) func() error {
	return func() error {
		_, err := manifest.Parse(manifest.Source{Name: "f.yaml", Text: text}).Bundle()
		return err
	}
}

func facts(text string) func() error {
	return func() error {
		spec := manifest.FactSourceSpec{Relations: []manifest.Relation{{Name: "friend",
			Arguments: []manifest.RelationArgument{{Name: "who", Type: "string"}}}}}
		_, err := factsource.ReadStatements(strings.NewReader(text), "f.jsonl", spec.Declared())
		return err
	}
}

func object(kind, name, spec string) string {
	return fmt.Sprintf("---\napiVersion: shai.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: {%s}\n", kind, name, spec)
}

// source says that bob, or another value, is alice's friend.
func source(name, kind, value string) string {
	return object("FactSource", name, fmt.Sprintf("relations: [{name: friend, arguments: [{type: %s}]}], "+
		"inline: [{conduit: friends/alice, says: friend, tuples: [[%s]]}]", kind, value))
}

// doubling are policies each of which includes the one before twice.
func inline(conduit, says, tuples string) string {
	return object("FactSource", "a", fmt.Sprintf("inline: [{conduit: %s, says: %q, tuples: [%s]}]", conduit, says, tuples))
}

func doubling(number int) string {
	text := "policy p0 { read :- sKeyIs(\"alice\"). read :- sKeyIs(\"bob\"). }\n"
	for i := 1; i < number; i++ {
		text += fmt.Sprintf("policy p%d includes p%d, p%d { }\n", i, i-1, i-1)
	}
	return text
}

// aliases is a page of YAML whose values are many gigabytes.
func aliases() string {
	return "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: a}\nspec:\n  inline:\n" +
		"    - &a {conduit: c, says: t, tuples: [" + strings.Repeat("[x], ", 1000) + "[x]]}\n" +
		strings.Repeat("    - *a\n", 4000)
}

var hostileRow = regexp.MustCompile("(?m)^\\| ([^|`]+) \\| `(.+)` \\|$")

// Every hostile input of the manual ends in the error that the manual says, soon, and is in the
// manual.
func TestHostileInputs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Bad input\n")
	if !found {
		t.Fatal("docs/policies.md has no section Bad input")
	}
	rows := map[string]string{}
	for _, row := range hostileRow.FindAllStringSubmatch(section, -1) {
		rows[row[1]] = row[2]
	}
	for name, input := range hostile {
		t.Run(name, func(t *testing.T) {
			err := input()
			if err == nil {
				t.Fatal("it is accepted")
			}
			if want, documented := rows[name]; !documented || !strings.Contains(err.Error(), want) {
				first, _, _ := strings.Cut(err.Error(), "\n")
				t.Errorf("docs/policies.md says %q of it, the error is\n| %s | `%.300s` |", want, name, first)
			}
		})
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/policies.md has a hostile input %q that no test has", name)
	}
}
