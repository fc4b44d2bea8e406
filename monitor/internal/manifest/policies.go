// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/policy"
)

// policy parses and compiles a policy's text. It refuses conditions that no monitor can
// enforce, and remembers the other policies.
func (c *checker) policy(o *object, p *Policy) {
	if o.broken || p.Spec.Text == "" {
		return
	}
	template, err := policy.CompileText(p.Metadata.Name, []byte(p.Spec.Text))
	if err == nil {
		err = template.CheckSupplied(policy.GrantOpen)
	}
	if err != nil {
		c.policyErrors(o, err)
		return
	}
	c.templates[o.name] = template
	expected := strings.ReplaceAll(o.name, "-", "_")
	if name := template.Name(); name != "" && name != expected {
		c.fail(o, "spec.text", "make metadata.name and the text agree",
			"the text declares policy %s; expected %s, after metadata.name", template.Name(), expected)
	}
}

// policyErrors reports errors in a text at their position in the manifest.
func (c *checker) policyErrors(o *object, err error) {
	var mistakes policy.Errors
	if !errors.As(err, &mistakes) {
		c.fail(o, "spec.text", "", "%v", err)
		return
	}
	for _, mistake := range mistakes {
		message := mistake.Message
		if mistake.Expected != "" {
			message += ", expected " + mistake.Expected
		}
		c.errors = append(c.errors, &Error{
			Position: o.textPosition("spec.text", mistake.Line, mistake.Column),
			Within:   Position{Line: mistake.Line, Column: mistake.Column}, Code: Malformed,
			Kind: o.kind, Name: o.name, Field: "spec.text", Message: message, Hint: mistake.Hint,
		})
	}
}

// textPosition translates a position within a text field, counted from 1, into one in the
// manifest. If YAML has folded or unescaped the text, the positions do not correspond,
// and the result is the position of the field.
func (o *object) textPosition(path string, line, column int) Position {
	position := o.position(path)
	node := o.texts[path]
	if node == nil || o.source == nil {
		return position
	}
	switch node.Style &^ yaml.TaggedStyle {
	case yaml.LiteralStyle:
		// The text begins on the line after the "|".
		position.Line += line
		position.Column = indentation(o.source.lines(), node) + column
	case 0:
		if line == 1 && !strings.Contains(node.Value, "\n") {
			position.Column += column - 1
		}
	}
	return position
}

// indentation returns the number of bytes by which the lines of a literal text are
// indented: the difference between the first non-empty line's length in the file and in
// the value.
func indentation(lines []string, node *yaml.Node) int {
	for i, value := range strings.Split(node.Value, "\n") {
		at := node.Line + i
		if strings.TrimSpace(value) != "" && at < len(lines) {
			return max(0, strings.Index(lines[at], value))
		}
	}
	return 0
}

// reference checks that a policy exists, and that it is given exactly its
// parameters. An argument may use "{name}" for the names in known.
func (c *checker) reference(o *object, at string, reference *PolicyReference, known []string) {
	if reference == nil || reference.Name == "" {
		return // optional, or reported by the decoder
	}
	c.refer(o, at+".name", "Policy", reference.Name)
	arguments := slices.Sorted(maps.Keys(reference.Arguments))
	if template := c.templates[reference.Name]; template != nil {
		parameters := template.Parameters()
		for _, name := range arguments {
			if !contains(parameters, name) {
				c.fail(o, join(at+".arguments", name), c.didYouMean(name, parameters),
					"policy %s has no parameter %q", reference.Name, name)
			}
		}
		for _, name := range parameters {
			if !contains(arguments, name) {
				c.fail(o, at+".arguments", "", "parameter %q of policy %s gets no value", name, reference.Name)
			}
		}
	}
	for _, argument := range arguments {
		for _, name := range placeholders(reference.Arguments[argument]) {
			if !contains(known, name) {
				c.fail(o, join(at+".arguments", argument), c.didYouMean(name, known),
					"{%s} stands for nothing here", name)
			}
		}
	}
}

// supplied refuses a policy that cannot be enforced because of the way in which its
// conduits are given to tasks.
func (c *checker) supplied(o *object, at string, reference *PolicyReference, grant policy.Grant) {
	if reference == nil || c.templates[reference.Name] == nil {
		return // reported by the decoder or the compiler
	}
	var mistakes policy.Errors
	if errors.As(c.templates[reference.Name].CheckSupplied(grant), &mistakes) {
		for _, mistake := range mistakes {
			c.fail(o, at+".name", mistake.Hint, "policy %s, line %d, column %d: %s", reference.Name, mistake.Line,
				mistake.Column, mistake.Message)
		}
	}
}
