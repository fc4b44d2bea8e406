// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/policy"
)

const (
	libraryTexts = "../../policy/library/"
	libraryPage  = "../../../docs/reference/policies.md"
	libraryIntro = `# The standard library of policies

<!-- Written by go test ./cmd/shai -run TestLibraryReference -rewrite from monitor/policy/library; change it there. -->

Manifests refer to these policies by name, and policies include them; nothing has to be copied
([how](../policies.md#the-standard-library)). ` + "`shai policy library`" + ` lists them. Each case below is a test.
`
)

// libraryCases are the cases beside a policy of the library.
type libraryCases struct {
	Arguments map[string]string
	Tests     []struct{ Name, Operation, Expect string }
}

// TestLibraryReference checks that the page about the library says what the library is.
func TestLibraryReference(t *testing.T) {
	var page strings.Builder
	page.WriteString(libraryIntro)
	for _, template := range policy.Library() {
		writeLibrarySection(t, &page, template)
	}
	if *rewrite {
		if err := os.WriteFile(libraryPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(libraryPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), page.String()); diff != "" {
		t.Errorf("%s (run with -rewrite to accept):\n%s", libraryPage, diff)
	}
}

func writeLibrarySection(t *testing.T, page *strings.Builder, template *policy.Template) {
	t.Helper()
	one := libraryPolicyOf(template)
	text, err := os.ReadFile(libraryTexts + template.Name() + "_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases libraryCases
	if err := yaml.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	_, declaration, _ := strings.Cut(one.Text, "\npolicy ")
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n", template.Name(), one.About)
	fmt.Fprintf(page, "```shai\npolicy %s```\n\n", declaration)
	for _, parameter := range one.Parameters {
		fmt.Fprintf(page, "- Parameter `%s`: a %s.\n", parameter.Name, parameter.Type)
	}
	read, write := whoMay(t, template)
	fmt.Fprintf(page, "- Who may read: %s.\n- Who may write: %s.\n", read, write)
	if one.Refused != "" {
		page.WriteString("- No monitor enforces it: where it is bound, it is refused.\n")
	}
	page.WriteString("\n| case | operation | answer |\n| --- | --- | --- |\n")
	for _, entry := range cases.Tests {
		operation := entry.Operation
		if operation == "" {
			operation = "read"
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", entry.Name, operation, entry.Expect)
	}
}

// whoMay says in words whom a policy's rules admit. Its parameters are bound to their own names.
func whoMay(t *testing.T, template *policy.Template) (read, write string) {
	t.Helper()
	arguments, types := map[string]string{}, template.ParameterTypes()
	for i, name := range template.Parameters() {
		arguments[name] = "<" + name + ">"
		if types[i] == "time" {
			arguments[name] = "2027-01-31T00:00:00Z"
		}
	}
	bound, err := template.Bind(arguments)
	if err != nil {
		t.Fatal(err)
	}
	words := func(whom string) string {
		for i, name := range template.Parameters() {
			if types[i] == "time" {
				whom = strings.ReplaceAll(whom, arguments[name], "<"+name+">")
			}
		}
		return "`" + whom + "`"
	}
	return words(bound.Read("this").Whom()), words(bound.Update("this").Whom())
}
