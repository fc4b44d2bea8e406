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

// policies compiles all policies together, since they may include each other, and examines them
// among the facts and tasks of the set. It refuses conditions that no monitor can enforce.
func (c *checker) policies(objects []*object) {
	var files []*policy.File
	owners := map[string]*object{}
	for _, o := range objects {
		p, ok := o.value.(*Policy)
		if !ok || o.broken || p.Spec.Text == "" || c.objects[o.key()] != o {
			continue
		}
		file, err := policy.ParseOne(o.name, []byte(p.Spec.Text))
		if err != nil {
			c.policyErrors(o, err)
			continue
		}
		c.declared(o, file.Policies[0])
		c.includes(o, file.Policies[0])
		file.Accepted = c.stored
		files, owners[o.name] = append(files, file), o
	}
	c.around = c.surroundings(objects)
	for _, checked := range policy.Check(c.around, files...) {
		o := owners[checked.File]
		for _, d := range checked.Diagnostics {
			c.diagnostic(o, d)
		}
		if checked.Template != nil {
			c.templates[o.name] = checked.Template
		}
	}
}

// Limits on the texts of policies with what they include, in bytes: of one, as of a text without
// includes on Kubernetes, and of all.
const (
	maxComposed    = 1 << 16
	maxAllComposed = 4 << 20
)

// includes notes the policies of the set that a policy includes, and that it does.
func (c *checker) includes(o *object, declaration *policy.Declaration) {
	for _, include := range declaration.Includes {
		if strings.HasPrefix(include.Name, policy.LibraryPrefix) {
			continue
		}
		c.used["Policy/"+include.Name] = true
		if last := len(c.composed) - 1; last < 0 || c.composed[last] != o {
			c.composed = append(c.composed, o)
		}
	}
}

// composedTexts returns the texts of the policies that include others of the set, with the clauses
// of those in place. It refuses what is too long to be kept.
func (c *checker) composedTexts() map[string]string {
	texts, total := map[string]string{}, 0
	for _, o := range c.composed {
		template := c.templates[o.name]
		if template == nil {
			continue // it has errors
		}
		text := template.Text()
		if total += len(text); len(text) > maxComposed || total > maxAllComposed {
			c.fail(o, "spec.text", "include fewer or shorter policies",
				"with what it includes, its text has %d bytes, and those of all policies that include others %d; at most "+
					"%d and %d are kept", len(text), total, maxComposed, maxAllComposed)
			continue
		}
		texts[o.name] = text
	}
	return texts
}

// declared compares the name in a text with the object's. From here on the policy has the object's:
// by that name others include it.
func (c *checker) declared(o *object, declaration *policy.Declaration) {
	name := declaration.Name
	if name != "" && name != o.name && name != strings.ReplaceAll(o.name, "-", "_") {
		c.fail(o, "spec.text", "make metadata.name and the text agree",
			"the text declares policy %s; expected %s, after metadata.name", name, o.name)
	}
	declaration.Name = o.name
}

// policyErrors reports errors in a text at their position in the manifest.
func (c *checker) policyErrors(o *object, err error) {
	var mistakes policy.Errors
	if !errors.As(err, &mistakes) {
		c.fail(o, "spec.text", "", "%v", err)
		return
	}
	for _, d := range mistakes.Diagnostics() {
		c.diagnostic(o, d)
	}
}

// diagnostic reports a finding in a text at its position in the manifest.
func (c *checker) diagnostic(o *object, d policy.Diagnostic) {
	found := &Error{
		Position: o.textPosition("spec.text", d.Line, d.Column), End: o.textPosition("spec.text", d.EndLine, d.EndColumn),
		Within: Position{Line: d.Line, Column: d.Column}, Code: Malformed, Lint: d.Code,
		Kind: o.kind, Name: o.name, Field: "spec.text", Message: d.Message, Hint: d.Remedy,
	}
	if d.Code == policy.CodeMissing {
		found.Code = Reference
	}
	if d.Severity == policy.SeverityWarning {
		found.Code = Suspicious
		c.warnings = append(c.warnings, found)
		return
	}
	c.errors = append(c.errors, found)
}

// enforced returns the policies that a monitor has to enforce.
func (c *checker) enforced(objects []*object) []*Policy {
	var policies []*Policy
	for _, o := range objects {
		p, ok := o.value.(*Policy)
		if !ok {
			continue
		}
		if template := c.templates[o.name]; template.Composed() {
			composed := *p
			composed.Spec.Text = template.Text()
			p = &composed
		}
		policies = append(policies, p)
	}
	for _, name := range slices.Sorted(maps.Keys(c.library)) {
		policies = append(policies, &Policy{Metadata: Metadata{Name: name},
			Spec: PolicySpec{Text: c.template(name).Text(), Mode: "Enforce"}})
	}
	slices.SortFunc(policies, func(a, b *Policy) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return policies
}

// template returns a policy of the set, or one of the standard library; nil if there is none, or its
// text is wrong.
func (c *checker) template(name string) *policy.Template {
	if ofLibrary, is := strings.CutPrefix(name, policy.LibraryPrefix); is {
		template, _ := policy.LibraryTemplate(ofLibrary)
		return template
	}
	return c.templates[name]
}

// libraryPolicy reports a reference to a policy that the standard library does not have, or that no
// monitor can enforce.
func (c *checker) libraryPolicy(o *object, at, name string) {
	template := c.template(name)
	if template == nil {
		var names []string
		for _, known := range policy.Library() {
			names = append(names, policy.LibraryPrefix+known.Name())
		}
		c.fail(o, at, c.didYouMean(name, names), "the standard library has no policy %q", name)
		return
	}
	c.library[name] = true
	c.refused(o, at, name, template.CheckSupplied())
}

// refused reports conditions of a policy that cannot be enforced where it is referred to.
func (c *checker) refused(o *object, at, name string, err error) {
	var mistakes policy.Errors
	if errors.As(err, &mistakes) {
		for _, mistake := range mistakes {
			c.fail(o, at, mistake.Hint, "policy %s, line %d, column %d: %s", name, mistake.Line, mistake.Column,
				mistake.Message)
		}
	}
}

// textPosition translates a position within a text field, counted from 1, into one in the
// manifest. If YAML has folded or unescaped the text, the positions do not correspond,
// and the result is the position of the field.
func (o *object) textPosition(path string, line, column int) Position {
	position := o.position(path)
	if !o.inPlace(path) {
		return position
	}
	node := o.texts[path]
	if node.Style&^yaml.TaggedStyle == yaml.LiteralStyle {
		// The text begins on the line after the "|".
		position.Line += line
		position.Column = indentation(o.source.lines(), node) + column
	} else if line == 1 {
		position.Column += quote(node) + column - 1
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
	if strings.HasPrefix(reference.Name, policy.LibraryPrefix) {
		c.libraryPolicy(o, at+".name", reference.Name)
	} else {
		c.refer(o, at+".name", "Policy", reference.Name)
	}
	arguments := slices.Sorted(maps.Keys(reference.Arguments))
	if template := c.template(reference.Name); template != nil {
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
// conduits are given to tasks, or because it asks for offsets that facts do not have.
func (c *checker) supplied(o *object, at string, reference *PolicyReference, grant policy.Grant) {
	if reference == nil || c.template(reference.Name) == nil {
		return // reported by the decoder or the compiler
	}
	binding := policy.Binding{Grant: grant, Arguments: reference.Arguments, IsLog: c.isLog}
	c.refused(o, at+".name", reference.Name, c.template(reference.Name).CheckBound(binding))
}
