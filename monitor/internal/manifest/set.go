// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// The kinds of objects, in the order in which they are listed.
var kindOrder = []string{"Policy", "FactSource", "Principal", "Task", "Pipeline"}

// newObject makes an empty object of a kind. It returns nil if the kind is unknown.
func newObject(kind string) any {
	switch kind {
	case "Policy":
		return new(Policy)
	case "FactSource":
		return new(FactSource)
	case "Principal":
		return new(Principal)
	case "Task":
		return new(Task)
	case "Pipeline":
		return new(Pipeline)
	}
	return nil
}

// object is one document with a known kind, and the positions of its fields.
type object struct {
	kind      string
	name      string
	value     any // *Policy, *FactSource, *Principal, *Task or *Pipeline
	positions map[string]Position
	texts     map[string]*yaml.Node
	source    *sourceText
	broken    bool // it has errors of its own; missing fields are not reported again
}

// sourceText is a source with its lines, which are needed for errors only.
type sourceText struct {
	Source

	lines func() []string
}

// label returns the object's name in errors.
func (o *object) label() string { return strings.TrimSpace(o.kind + " " + o.name) }

// Set holds the objects of manifests. Each object has been checked by itself;
// [Set.Bundle] checks whether they fit together.
type Set struct {
	objects []*object
	errors  Errors
	stored  bool // they are of a bundle that was in force
}

// Parse reads manifests. It always returns a set, which also holds the errors, so that
// [Set.Bundle] can report them together with its own.
func Parse(sources ...Source) *Set {
	set := new(Set)
	set.read(sources...)
	return set
}

func (s *Set) read(sources ...Source) {
	for _, source := range sources {
		s.parse(&sourceText{Source: source,
			lines: sync.OnceValue(func() []string { return strings.Split(source.Text, "\n") })})
	}
}

// Len returns the number of objects.
func (s *Set) Len() int { return len(s.objects) }

// Count returns the number of objects of a kind.
func (s *Set) Count(kind string) int {
	number := 0
	for _, o := range s.objects {
		if o.kind == kind {
			number++
		}
	}
	return number
}

func (s *Set) parse(source *sourceText) {
	documents := yaml.NewDecoder(strings.NewReader(source.Text))
	for {
		var document yaml.Node
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.errors = append(s.errors, syntaxError(source.Name, err))
			return // errors after a syntax error may only be its consequences
		}
		if len(document.Content) == 1 && !isNull(document.Content[0]) {
			s.document(source, document.Content[0])
		}
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError turns the YAML library's error, whose text contains the line, into one with
// a position.
func syntaxError(file string, err error) *Error {
	match := yamlLine.FindStringSubmatch(err.Error())
	line := 1
	if match != nil && match[1] != "" {
		line, _ = strconv.Atoi(match[1])
	}
	message := strings.TrimPrefix(err.Error(), strings.Join(match[:min(1, len(match))], ""))
	return &Error{Position: Position{File: file, Line: line}, Code: Malformed, Message: "not YAML: " + message}
}

// document decodes one object.
func (s *Set) document(source *sourceText, root *yaml.Node) {
	d := newDecoder(source.Name)
	d.stored = s.stored
	defer func() { s.errors = append(s.errors, d.errors...) }()
	if root.Kind != yaml.MappingNode {
		d.fail(root, "", "", "expected an object with apiVersion, kind, metadata and spec, got %s", describe(root))
		return
	}
	kind, name := d.envelope(root)
	value := newObject(kind)
	if value == nil {
		return
	}
	d.kind, d.name = kind, name
	d.value(without(root, "apiVersion", "kind"), reflect.ValueOf(value).Elem(), "", rule{}, 0)
	s.objects = append(s.objects, &object{
		kind: kind, name: name, value: value, positions: d.positions, texts: d.texts,
		source: source, broken: len(d.errors) > 0,
	})
}

// envelope checks the fields that every object begins with. kind is "" if it is unknown,
// name if it is missing.
func (d *decoder) envelope(root *yaml.Node) (kind, name string) {
	version, kindNode := child(root, "apiVersion"), child(root, "kind")
	if metadata := child(root, "metadata"); metadata != nil && metadata.Kind == yaml.MappingNode {
		if node := child(metadata, "name"); node != nil && node.Kind == yaml.ScalarNode {
			name = node.Value
		}
	}
	d.name = name
	switch {
	case kindNode == nil || kindNode.Value == "":
		d.fail(root, "kind", "", "the field is missing; expected %s", alternatives(kindOrder))
	case newObject(kindNode.Value) == nil:
		d.fail(kindNode, "kind", near(kindNode.Value, kindOrder), "%q is not a kind; expected %s",
			kindNode.Value, alternatives(kindOrder))
	default:
		kind = kindNode.Value
		d.kind = kind
	}
	switch {
	case version == nil:
		d.fail(root, "apiVersion", "", "the field is missing; expected %s", APIVersion)
	case version.Value != APIVersion:
		d.fail(version, "apiVersion", "", "%q is not a known version; expected %s", version.Value, APIVersion)
	}
	return kind, name
}

// child returns the value of a mapping's key, or nil.
func child(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// without returns a mapping without the first entry of each of the keys.
func without(mapping *yaml.Node, keys ...string) *yaml.Node {
	rest := *mapping
	rest.Content = nil
	left := map[string]bool{}
	for _, key := range keys {
		left[key] = true
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if key := mapping.Content[i].Value; left[key] {
			left[key] = false
			continue
		}
		rest.Content = append(rest.Content, mapping.Content[i], mapping.Content[i+1])
	}
	return &rest
}

// key identifies an object within a set.
func (o *object) key() string { return fmt.Sprintf("%s/%s", o.kind, o.name) }
