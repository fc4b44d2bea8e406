// SPDX-License-Identifier: BSD-2-Clause

package schemas

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func parse(t *testing.T, text string) object {
	t.Helper()
	var read object
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return read
}

func TestConvert(t *testing.T) {
	tests := []struct{ name, in, out string }{
		{"fields are closed", `{"properties": {"a": {"type": "string"}}}`,
			`{"properties": {"a": {"type": "string"}}, "additionalProperties": false}`},
		{
			"at every depth", `{"items": {"properties": {"a": {"properties": {"b": {}}}}}}`,
			`{"items": {"properties": {"a": {"properties": {"b": {}}, "additionalProperties": false}}, "additionalProperties": false}}`,
		},
		{"a map stays open", `{"additionalProperties": {"type": "string"}}`,
			`{"additionalProperties": {"type": "string"}}`},
		{
			"what keeps unknown fields stays open",
			`{"properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": true}`,
			`{"properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": true}`,
		},
		{
			"a condition does not name all fields",
			`{"properties": {"a": {}, "b": {}}, "anyOf": [{"properties": {"a": {"properties": {"c": {}}}}}]}`,
			`{"properties": {"a": {}, "b": {}}, "anyOf": [{"properties": {"a": {"properties": {"c": {}}}}}], "additionalProperties": false}`,
		},
		{"null where it is allowed", `{"type": "string", "nullable": true}`,
			`{"anyOf": [{"type": "string", "nullable": true}, {"type": "null"}]}`},
		{
			"and closed beside it", `{"properties": {"a": {}}, "nullable": true}`,
			`{"anyOf": [{"properties": {"a": {}}, "nullable": true, "additionalProperties": false}, {"type": "null"}]}`,
		},
		{
			"number or string", `{"x-kubernetes-int-or-string": true}`,
			`{"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}`,
		},
		{"a reference", `{"allOf": [{"$ref": "#/components/schemas/Leaf"}]}`,
			`{"allOf": [{"$ref": "#/definitions/Leaf"}]}`},
	}
	components := map[string]object{"Leaf": {"type": "string"}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, want := conversion{components, object{}}.convert(parse(t, test.in), true), parse(t, test.out)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestStandaloneHoldsWhatItRefersTo(t *testing.T) {
	components := map[string]object{
		"Tree": parse(t, `{"type": "object", "required": ["root"], "properties":
			{"kind": {"type": "string"}, "apiVersion": {"type": "string"}, "root": {"$ref": "#/components/schemas/Node"}}}`),
		"Node":  parse(t, `{"properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}}}`),
		"Other": parse(t, `{}`),
	}
	got := standalone(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Tree"}, "Tree", components)
	want := parse(t, `{
		"$schema": "http://json-schema.org/draft-04/schema#", "title": "example.dev/v1 Tree",
		"type": "object", "required": ["apiVersion", "kind", "root"], "additionalProperties": false,
		"properties": {
			"apiVersion": {"type": "string", "enum": ["example.dev/v1"]}, "kind": {"type": "string", "enum": ["Tree"]},
			"root": {"$ref": "#/definitions/Node"}},
		"definitions": {"Node": {"additionalProperties": false,
			"properties": {"children": {"type": "array", "items": {"$ref": "#/definitions/Node"}}}}}}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFileName(t *testing.T) {
	for want, kind := range map[string]schema.GroupVersionKind{
		"service-v1.json":                   {Version: "v1", Kind: "Service"},
		"deployment-apps-v1.json":           {Group: "apps", Version: "v1", Kind: "Deployment"},
		"ingress-networking-v1.json":        {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		"jailpool-shai-v1alpha1.json":       {Group: "shai.dev", Version: "v1alpha1", Kind: "JailPool"},
		"servicemonitor-monitoring-v1.json": {Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	} {
		if got := FileName(kind); got != want {
			t.Errorf("the file of %v is %s, want %s", kind, got, want)
		}
	}
}
