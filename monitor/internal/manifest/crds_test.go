// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/policy"
)

const crds = "../../../crds/bases"

// node is a part of a structural schema (apiextensions.k8s.io/v1), as far as it has a
// counterpart in a rule tag.
type node struct {
	Type                 string
	Default              any
	Enum                 []string
	Required             []string
	Properties           map[string]node
	Items                *node
	AdditionalProperties *node `yaml:"additionalProperties"`
	MinLength            int   `yaml:"minLength"`
	MaxLength            int   `yaml:"maxLength"`
	MinItems             int   `yaml:"minItems"`
	MaxItems             int   `yaml:"maxItems"`
	MaxProperties        int   `yaml:"maxProperties"`
	Minimum              *int  `yaml:"minimum"`
	Maximum              *int  `yaml:"maximum"`
	IntOrString          bool  `yaml:"x-kubernetes-int-or-string"`
}

// specSchema reads the schema of a kind's spec.
func specSchema(t *testing.T, kind string) node {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	if kind == "Policy" {
		plural = "policies"
	}
	text, err := os.ReadFile(filepath.Join(crds, plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPI node `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == "v1alpha1" {
			return version.Schema.OpenAPI.Properties["spec"]
		}
	}
	t.Fatalf("%s has no version v1alpha1", plural)
	return node{}
}

// rules are the rules of a schema, a line for each field.
type rules map[string]string

func (r rules) add(path, form string, required bool, fallback any, enum []string, low, high string) {
	enum = slices.Sorted(slices.Values(enum))
	if form == "string" && !required {
		low = "" // an empty text is the same as none
	}
	if fallback == nil || fallback == false {
		fallback = ""
	}
	r[path] = fmt.Sprintf("%s required=%v default=%v enum=%s from %s to %s", form, required, fallback,
		strings.Join(enum, "|"), low, high)
}

// ofType adds what the rule tags say about a field.
func (r rules) ofType(path string, t reflect.Type, tag rule) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	low, high := "", fmt.Sprint(tag.max)
	if tag.required {
		low = "1"
	}
	if tag.name {
		high = "63"
	}
	fallback := any(tag.fallback)
	switch {
	case t == reflect.TypeFor[Share]():
		r.add(path, "int-or-string", tag.required, fallback, nil, "", "")
	case t == reflect.TypeFor[policy.Tuple]():
		r.add(path, "array", tag.required, nil, nil, "", fmt.Sprint(policy.MaxArguments))
	case t.Kind() == reflect.String && tag.enum != nil:
		r.add(path, "string", tag.required, fallback, tag.enum, "", "")
	case t.Kind() == reflect.String:
		r.add(path, "string", tag.required, fallback, nil, low, high)
	case t.Kind() == reflect.Int:
		r.add(path, "integer", tag.required, fallback, nil, fmt.Sprint(tag.min), high)
	case t.Kind() == reflect.Bool:
		r.add(path, "boolean", tag.required, fallback, nil, "", "")
	case t.Kind() == reflect.Slice:
		low = ""
		if tag.filled {
			low = "1"
		}
		r.add(path, "array", tag.required, nil, nil, low, high)
		r.ofType(path+"[]", t.Elem(), rule{max: tag.item, required: t.Elem().Kind() == reflect.String})
	case t.Kind() == reflect.Map:
		r.add(path, "object", tag.required, nil, nil, "", high)
		r.ofType(path+"{}", t.Elem(), rule{max: maxEntry})
	default:
		r.add(path, "object", tag.required, nil, nil, "", "")
		for _, f := range fieldsOf(t) {
			r.ofType(path+"."+f.name, t.Field(f.index).Type, f.rule)
		}
	}
}

// ofSchema adds what a custom resource definition says about a field. Defaults of lists
// and objects are for the operator, which alone acts on them.
func (r rules) ofSchema(path string, n node, required bool) {
	limit := func(low, high int) (string, string) {
		if low == 0 {
			return "", fmt.Sprint(high)
		}
		return fmt.Sprint(low), fmt.Sprint(high)
	}
	switch {
	case n.IntOrString:
		r.add(path, "int-or-string", required, n.Default, nil, "", "")
	case n.Type == "string" && n.Enum != nil:
		r.add(path, n.Type, required, n.Default, n.Enum, "", "")
	case n.Type == "string":
		low, high := limit(n.MinLength, n.MaxLength)
		r.add(path, n.Type, required, n.Default, nil, low, high)
	case n.Type == "integer":
		low, high := "none", "none"
		if n.Minimum != nil && n.Maximum != nil {
			low, high = fmt.Sprint(*n.Minimum), fmt.Sprint(*n.Maximum)
		}
		r.add(path, n.Type, required, n.Default, nil, low, high)
	case n.Type == "array":
		low, high := limit(n.MinItems, n.MaxItems)
		r.add(path, n.Type, required, nil, nil, low, high)
		// The values of a tuple are of several types: the manifest's check is stricter.
		if n.Items != nil && !strings.HasSuffix(path, ".tuples[]") {
			r.ofSchema(path+"[]", *n.Items, n.Items.Type == "string")
		}
	case n.AdditionalProperties != nil:
		r.add(path, n.Type, required, n.Default, nil, "", fmt.Sprint(n.MaxProperties))
		r.ofSchema(path+"{}", *n.AdditionalProperties, false)
	default:
		// An object's default is empty: it is there for the defaults of its fields.
		r.add(path, n.Type, required, nil, nil, "", "")
		for name, property := range n.Properties {
			r.ofSchema(path+"."+name, property, slices.Contains(n.Required, name))
		}
	}
}

// One file works with "kubectl apply" and with "shai apply": the two schemas have the
// same fields, and say the same about each.
func TestSchemaIsThatOfTheCustomResourceDefinitions(t *testing.T) {
	for _, kind := range kindOrder {
		t.Run(kind, func(t *testing.T) {
			manifest, crd := rules{}, rules{}
			crd.ofSchema("spec", specSchema(t, kind), true)
			spec, _ := reflect.TypeOf(newObject(kind)).Elem().FieldByName("Spec")
			manifest.ofType("spec", spec.Type, rule{required: true})
			if diff := cmp.Diff(crd, manifest); diff != "" {
				t.Errorf("custom resource definition (-) and manifest (+):\n%s", diff)
			}
		})
	}
}
