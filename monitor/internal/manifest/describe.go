// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/policy"
)

// describe describes a user's value, for "expected …, got …".
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch node.Tag {
	case "!!null":
		return "nothing"
	case "!!str":
		return fmt.Sprintf("the text %q", shorten(node.Value))
	case "!!int", "!!float":
		return "the number " + shorten(node.Value)
	case "!!bool":
		return "the truth value " + node.Value
	case "!!timestamp":
		return "the time " + node.Value
	}
	return fmt.Sprintf("a value with the tag %s", node.Tag)
}

func shorten(s string) string {
	if len(s) <= 40 {
		return s
	}
	return strings.ToValidUTF8(s[:40], "") + "…"
}

// expectation describes the values that a field accepts.
func expectation(t reflect.Type, r rule) string {
	if t == reflect.TypeFor[policy.Tuple]() {
		return "a list of texts, whole numbers and times"
	}
	if t == reflect.TypeFor[Share]() {
		return "a number of members or a share such as 25%"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return expectation(t.Elem(), r)
	case reflect.Struct:
		return mappingOf(fieldsOf(t))
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "a mapping of names to texts"
	case reflect.Int:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	}
	if r.enum != nil {
		return alternatives(r.enum)
	}
	return "a text"
}

func mappingOf(fields []field) string {
	return "a mapping with the fields " + strings.Join(names(fields), ", ")
}

func alternatives(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func names(fields []field) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return list
}

func find(fields []field, name string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

func contains(list []string, word string) bool { return slices.Contains(list, word) }

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// join returns the path of a field within path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
