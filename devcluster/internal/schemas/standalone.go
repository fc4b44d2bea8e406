// SPDX-License-Identifier: BSD-2-Clause

package schemas

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An object is a decoded JSON object.
type object = map[string]any

func list(value any) []any { found, _ := value.([]any); return found }

func text(value any) string { found, _ := value.(string); return found }

// dialect is the version of JSON schema that is closest to OpenAPI 3.0: its exclusive
// minimum is a boolean.
const dialect = "http://json-schema.org/draft-04/schema#"

const (
	referencePrefix  = "#/components/schemas/"
	definitionPrefix = "#/definitions/"
)

// standalone returns the schema of one kind, with everything that it refers to. It is
// strict: unknown fields are errors, as in kubectl's strict validation.
func standalone(kind schema.GroupVersionKind, name string, components map[string]object) object {
	c := conversion{components, object{}}
	root := c.convert(components[name], true)
	root["$schema"] = dialect
	root["title"] = kind.GroupVersion().String() + " " + kind.Kind
	properties, _ := root["properties"].(object)
	properties["apiVersion"] = only(kind.GroupVersion().String())
	properties["kind"] = only(kind.Kind)
	required := []any{"apiVersion", "kind"}
	for _, field := range list(root["required"]) {
		if field != "apiVersion" && field != "kind" {
			required = append(required, field)
		}
	}
	root["required"] = required
	if len(c.definitions) > 0 {
		root["definitions"] = c.definitions
	}
	return root
}

func only(value string) object { return object{"type": "string", "enum": []any{value}} }

// A conversion makes JSON schemas from OpenAPI schemas, and collects the components that
// they refer to.
type conversion struct {
	components  map[string]object
	definitions object
}

// convert converts one schema. A closed one names all fields that exist. A schema that is
// not closed only adds conditions to one that is.
func (c conversion) convert(in object, closed bool) object {
	out := maps.Clone(in)
	for key, value := range in {
		switch key {
		case "$ref":
			out[key] = c.refer(text(value))
		case "properties":
			fields := object{}
			for field, described := range value.(object) {
				fields[field] = c.convert(described.(object), closed)
			}
			out[key] = fields
		case "items", "additionalProperties":
			if described, ok := value.(object); ok {
				out[key] = c.convert(described, closed)
			}
		case "allOf", "anyOf", "oneOf":
			var choices []any
			for _, choice := range value.([]any) {
				choices = append(choices, c.convert(choice.(object), false))
			}
			out[key] = choices
		case "not":
			out[key] = c.convert(value.(object), false)
		}
	}
	if closed && closes(in) {
		out["additionalProperties"] = false
	}
	if in["x-kubernetes-int-or-string"] == true && in["type"] == nil && in["anyOf"] == nil {
		out["anyOf"] = []any{object{"type": "integer"}, object{"type": "string"}}
	}
	if in["nullable"] == true {
		return object{"anyOf": []any{out, object{"type": "null"}}}
	}
	return out
}

// closes reports whether a schema names all fields that exist.
func closes(in object) bool {
	return in["properties"] != nil && in["additionalProperties"] == nil &&
		in["x-kubernetes-preserve-unknown-fields"] != true && in["x-kubernetes-embedded-resource"] != true
}

// refer adds a component to the definitions and returns the reference to it.
func (c conversion) refer(reference string) string {
	name := strings.TrimPrefix(reference, referencePrefix)
	if _, known := c.definitions[name]; !known {
		c.definitions[name] = true // this ends a recursion
		c.definitions[name] = c.convert(c.components[name], true)
	}
	return definitionPrefix + name
}
