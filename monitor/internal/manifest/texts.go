// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/policy"
)

// PolicyText is the text of a Policy that stands in a manifest as it is, so that each of its places is
// one of the file.
type PolicyText struct {
	Object string   // the Policy's name
	Named  Position // where it gets its name
	Text   string
	object *object
}

// PolicyTexts lists the texts of Policies in the order of the manifests, without those that YAML or
// JSON has folded or unescaped.
func (s *Set) PolicyTexts() []PolicyText {
	var all []PolicyText
	for _, o := range s.objects {
		if p, is := o.value.(*Policy); is && o.inPlace("spec.text") {
			all = append(all, PolicyText{o.name, o.position("metadata.name"), p.Spec.Text, o})
		}
	}
	return all
}

// Position translates a line and a column in bytes, both from 1, into the place in the file, which
// counts in the same way.
func (t PolicyText) Position(line, column int) Position {
	return t.object.textPosition("spec.text", line, column)
}

// Place is Position in the form of package policy.
func (t PolicyText) Place(in policy.Position) (file string, at policy.Position) {
	place := t.Position(int(in.Line), int(in.Column))
	return place.File, policy.Position{Line: int32(place.Line), Column: int32(place.Column)} //nolint:gosec // far below 2^31
}

// inPlace reports whether the places of a text field are places of its file: a literal block, or one
// line without anything that YAML replaces.
func (o *object) inPlace(path string) bool {
	node := o.texts[path]
	if node == nil || o.source == nil {
		return false
	}
	if node.Style&^yaml.TaggedStyle == yaml.LiteralStyle {
		return true
	}
	lines, from := o.source.lines(), node.Column-1+quote(node)
	if node.Line > len(lines) {
		return false
	}
	line := []rune(lines[node.Line-1]) // YAML counts characters
	return from <= len(line) && strings.HasPrefix(string(line[from:]), node.Value)
}

// quote is the length of what stands before the text of a node in one line.
func quote(node *yaml.Node) int {
	if node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return 1
	}
	return 0
}

// Findings are the errors and warnings that concern policies: those in their texts, in Policies, in
// the FactSources with whose relations they are compared, and in files that are no YAML.
func (r Report) Findings() []policy.Diagnostic {
	var all []policy.Diagnostic
	for _, found := range slices.Concat(r.Errors, r.Warnings) {
		unread := found.Kind == "" && found.Field == "" // no YAML
		around := found.Code == Malformed && (found.Kind == "Policy" || found.Kind == "FactSource")
		if found.Lint != "" || unread || around {
			all = append(all, found.diagnostic())
		}
	}
	return all
}

// diagnostic gives a finding in a manifest the form of those in policy files.
func (e *Error) diagnostic() policy.Diagnostic {
	d := policy.Diagnostic{Severity: policy.SeverityError, Code: e.Lint, File: e.Position.File,
		Line: e.Position.Line, Column: e.Position.Column, EndLine: e.End.Line, EndColumn: e.End.Column,
		Message: e.Message, Remedy: e.Hint}
	if e.Kind == "Policy" {
		d.Policy = e.Name
	}
	if e.Code == Suspicious {
		d.Severity = policy.SeverityWarning
	}
	if e.Lint == "" {
		d.Code = policy.Code("manifest-" + string(e.Code))
		d.Message = parts(e.Object(), e.Field, e.Message)
	}
	if d.EndLine == 0 {
		d.EndLine, d.EndColumn = d.Line, d.Column
	}
	return d
}
