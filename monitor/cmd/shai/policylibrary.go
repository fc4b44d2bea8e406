// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"shai.dev/monitor/policy"
)

// libraryPolicy is one policy of the standard library.
type libraryPolicy struct {
	Name       string             `json:"name"` // as manifests refer to it: library/friends
	Parameters []libraryParameter `json:"parameters"`
	About      string             `json:"about"`
	Text       string             `json:"text"`
	// Refused is why no monitor enforces the policy; absent if one does.
	Refused string `json:"refused,omitempty"`
}

// libraryParameter is a parameter with its type: string, integer or time.
type libraryParameter struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func (p *program) policyLibraryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "library [NAME]",
		Short: "List the standard policies, or show one",
		Long: `List the policies of the standard library, or show the text of one. Manifests refer to them
by name (policy: {name: library/friends, arguments: {owner: alice}}), and policies include them
(policy mine(owner) includes library/friends(owner) { … }).`,
		Example: `  shai policy library
  shai policy library friends`,
		Args: cobra.MaximumNArgs(1),
		RunE: p.does(func(_ context.Context, arguments []string) error {
			if len(arguments) == 0 {
				all := libraryPolicies()
				return p.print(all, func(w io.Writer) { printLibrary(w, all) })
			}
			name := strings.TrimPrefix(arguments[0], policy.LibraryPrefix)
			template, found := policy.LibraryTemplate(name)
			if !found {
				return fmt.Errorf("the standard library has no policy %q; `shai policy library` lists them", name)
			}
			one := libraryPolicyOf(template)
			return p.print(one, func(w io.Writer) { fmt.Fprint(w, one.Text) })
		}),
	}
}

func libraryPolicies() []libraryPolicy {
	var all []libraryPolicy
	for _, template := range policy.Library() {
		all = append(all, libraryPolicyOf(template))
	}
	return all
}

func libraryPolicyOf(template *policy.Template) libraryPolicy {
	text, _ := policy.LibraryText(template.Name())
	one := libraryPolicy{Name: policy.LibraryPrefix + template.Name(), Parameters: []libraryParameter{},
		About: strings.Join(template.About(), " "), Text: text}
	types := template.ParameterTypes()
	for i, name := range template.Parameters() {
		one.Parameters = append(one.Parameters, libraryParameter{name, types[i]})
	}
	if err := template.CheckSupplied(); err != nil {
		one.Refused = err.Error()
	}
	return one
}

// signature writes a policy as the language declares it: library/expiry(end: time).
func (l libraryPolicy) signature() string {
	if len(l.Parameters) == 0 {
		return l.Name
	}
	parameters := make([]string, len(l.Parameters))
	for i, parameter := range l.Parameters {
		parameters[i] = parameter.Name
		if parameter.Type != "string" {
			parameters[i] += ": " + parameter.Type
		}
	}
	return l.Name + "(" + strings.Join(parameters, ", ") + ")"
}

func printLibrary(w io.Writer, all []libraryPolicy) {
	for _, one := range all {
		fmt.Fprintf(w, "%s\n    %s\n", one.signature(), one.About)
		if one.Refused != "" {
			fmt.Fprintln(w, "    No monitor enforces it.")
		}
	}
}
