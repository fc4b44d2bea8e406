// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/policy"
)

// Limits on one document, so that a few bytes with nested aliases cannot become gigabytes
// of values.
const (
	maxDepth = 32
	maxNodes = 1 << 20
	maxEntry = 4096 // bytes of one value of a mapping of texts

	maxErrors = 1000 // of one document; nobody reads more
)

// decoder turns the YAML nodes of one document into a Go value. It continues after an
// error, so that a user sees all errors at once. It remembers the position of every
// field, for errors that are found later.
type decoder struct {
	file      string
	kind      string // of the object
	name      string // of the object
	positions map[string]Position
	texts     map[string]*yaml.Node // scalar nodes by field, to find columns within texts
	errors    Errors
	nodes     int
	exhausted bool
	stored    bool // the document is of a bundle that was in force
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, positions: map[string]Position{}, texts: map[string]*yaml.Node{}}
}

func (d *decoder) fail(node *yaml.Node, path, hint, format string, arguments ...any) {
	d.errors = append(d.errors, &Error{
		Position: d.position(node), Code: Malformed, Kind: d.kind, Name: d.name, Field: path,
		Message: fmt.Sprintf(format, arguments...), Hint: hint,
	})
}

func (d *decoder) position(node *yaml.Node) Position {
	return Position{File: d.file, Line: node.Line, Column: node.Column}
}

// value decodes node into target, which is the field at path.
func (d *decoder) value(node *yaml.Node, target reflect.Value, path string, r rule, depth int) {
	if d.nodes++; d.nodes > maxNodes || depth > maxDepth {
		if !d.exhausted {
			d.exhausted = true
			d.fail(node, path, "write the values out instead of using aliases",
				"the document is nested deeper than %d levels or holds more than %d values", maxDepth, maxNodes)
		}
		return
	}
	if node.Kind == yaml.AliasNode {
		d.value(node.Alias, target, path, r, depth+1)
		return
	}
	d.positions[path] = d.position(node)
	switch special := target.Addr().Interface().(type) {
	case *policy.Tuple:
		*special = d.tuple(node, path)
		return
	case *Share:
		*special = d.share(node, path)
		return
	case *FormerRuntime:
		if !d.stored {
			d.fail(node, path, ChooseRuntime, "a task no longer chooses the paths of its runtime")
			return
		}
	}
	switch target.Kind() {
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		d.value(node, target.Elem(), path, r, depth)
	case reflect.Struct:
		d.structure(node, target, path, depth)
	case reflect.Slice:
		d.list(node, target, path, r, depth)
	case reflect.Map:
		d.texted(node, target, path, r, depth)
	case reflect.String:
		d.text(node, target, path, r)
	case reflect.Int:
		d.number(node, target, path, r)
	case reflect.Bool:
		d.boolean(node, target, path)
	default:
		bug.Found("no decoder for %s", target.Type())
	}
}

// notOurs are fields, by position, that Kubernetes or the operator maintains. They are
// ignored here, so that an object can be passed on as it was read.
var notOurs = map[string][]string{
	"": {"status"},
	"metadata": {
		"namespace", "labels", "annotations", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "ownerReferences", "finalizers",
		"generateName", "selfLink",
	},
}

// structure decodes a mapping with known fields.
func (d *decoder) structure(node *yaml.Node, target reflect.Value, path string, depth int) {
	fields := fieldsOf(target.Type())
	if node.Kind != yaml.MappingNode {
		d.fail(node, path, "", "expected %s, got %s", mappingOf(fields), describe(node))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content) && len(d.errors) < maxErrors; i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := join(path, key.Value)
		known, found := find(fields, key.Value)
		switch {
		case seen[key.Value]:
			d.fail(key, at, "keep one of them", "the field is given twice")
		case !found && contains(notOurs[path], key.Value):
		case !found:
			d.fail(key, at, didYouMean(key.Value, names(fields)), "unknown field")
		case isNull(value):
			// As in Kubernetes, null means that the field is absent.
		default:
			d.value(value, target.Field(known.index), at, known.rule, depth+1)
		}
		seen[key.Value] = seen[key.Value] || found && !isNull(value)
	}
	d.absent(node, target, path, fields, seen)
}

// absent fills defaults and reports missing fields.
func (d *decoder) absent(node *yaml.Node, target reflect.Value, path string, fields []field, seen map[string]bool) {
	for _, f := range fields {
		if seen[f.name] {
			continue
		}
		if f.rule.required {
			d.fail(node, join(path, f.name), "", "the field is missing; expected %s",
				expectation(target.Field(f.index).Type(), f.rule))
		}
		if f.rule.fallback != "" {
			f.rule.fill(target.Field(f.index))
		}
	}
}

// fill sets an absent field to its default.
func (r rule) fill(target reflect.Value) {
	if target.Kind() == reflect.Int {
		target.SetInt(int64(limitOf("default="+r.fallback, r.fallback)))
		return
	}
	target.SetString(r.fallback)
}

func (d *decoder) list(node *yaml.Node, target reflect.Value, path string, r rule, depth int) {
	if node.Kind != yaml.SequenceNode {
		d.fail(node, path, "write it as [item, item] or as lines that begin with \"- \"",
			"expected a list, got %s", describe(node))
		return
	}
	if r.filled && len(node.Content) == 0 {
		d.fail(node, path, "", "the list is empty; expected at least one item")
	}
	if r.max > 0 && len(node.Content) > r.max {
		d.fail(node, path, "", "the list has %d items; at most %d are allowed", len(node.Content), r.max)
		return
	}
	target.Set(reflect.MakeSlice(target.Type(), len(node.Content), len(node.Content)))
	for i, item := range node.Content {
		if len(d.errors) >= maxErrors {
			return
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if isNull(item) {
			d.fail(item, at, "", "the item is empty; expected %s", expectation(target.Type().Elem(), rule{}))
			continue
		}
		d.value(item, target.Index(i), at, rule{required: true, max: r.item}, depth+1)
	}
}

// texted decodes a mapping with free keys and text values.
func (d *decoder) texted(node *yaml.Node, target reflect.Value, path string, r rule, depth int) {
	if node.Kind != yaml.MappingNode {
		d.fail(node, path, "", "expected a mapping of names to texts, got %s", describe(node))
		return
	}
	if r.max > 0 && len(node.Content)/2 > r.max {
		d.fail(node, path, "", "the mapping has %d entries; at most %d are allowed", len(node.Content)/2, r.max)
		return
	}
	target.Set(reflect.MakeMap(target.Type()))
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := join(path, key.Value)
		if target.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			d.fail(key, at, "keep one of them", "the entry is given twice")
			continue
		}
		text := reflect.New(target.Type().Elem()).Elem()
		d.value(value, text, at, rule{max: maxEntry}, depth+1)
		target.SetMapIndex(reflect.ValueOf(key.Value), text)
	}
}

func (d *decoder) text(node *yaml.Node, target reflect.Value, path string, r rule) {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		hint := ""
		if node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
			hint = fmt.Sprintf("put it in quotes: %q", node.Value)
		}
		d.fail(node, path, hint, "expected a text, got %s", describe(node))
		return
	}
	d.texts[path] = node
	switch {
	case !utf8.ValidString(node.Value):
		d.fail(node, path, "", "the text is not valid UTF-8")
	case r.required && node.Value == "":
		d.fail(node, path, "", "the text is empty")
	case r.max > 0 && len(node.Value) > r.max:
		d.fail(node, path, "", "the text has %d bytes; at most %d are allowed", len(node.Value), r.max)
	case r.name && !IsLabel(node.Value):
		d.fail(node, path, "", "%q is not a name; expected lower-case letters, digits and inner hyphens, at most 63",
			node.Value)
	case r.enum != nil && !contains(r.enum, node.Value):
		d.fail(node, path, near(node.Value, r.enum), "%q is not allowed; expected %s", node.Value, alternatives(r.enum))
	default:
		target.SetString(node.Value)
	}
}

func (d *decoder) number(node *yaml.Node, target reflect.Value, path string, r rule) {
	n, err := strconv.Atoi(node.Value)
	switch {
	case node.Kind != yaml.ScalarNode || node.Tag != "!!int" || err != nil:
		d.fail(node, path, "", "expected a whole number, got %s", describe(node))
	case n < r.min || r.max > 0 && n > r.max:
		d.fail(node, path, "", "%d is out of range; expected %d to %d", n, r.min, r.max)
	default:
		target.SetInt(int64(n))
	}
}

var shareForm = regexp.MustCompile(`^([1-9]\d{0,2}|[1-9]\d?%|100%)$`)

// share reads a number of members or a percentage of them.
func (d *decoder) share(node *yaml.Node, path string) Share {
	number, _ := strconv.Atoi(node.Value)
	if node.Kind != yaml.ScalarNode || !shareForm.MatchString(node.Value) || number > maxMembers {
		d.fail(node, path, "", "expected 1 to %d members or a share such as 25%%, got %s", maxMembers, describe(node))
		return ""
	}
	return Share(node.Value)
}

func (d *decoder) boolean(node *yaml.Node, target reflect.Value, path string) {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
		d.fail(node, path, "", "expected true or false, got %s", describe(node))
		return
	}
	target.SetBool(node.Value[0] == 't' || node.Value[0] == 'T')
}
