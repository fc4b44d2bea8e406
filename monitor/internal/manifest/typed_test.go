// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/content"
)

// Manifests name exactly the types that have a parser.
func TestTypesHaveParsers(t *testing.T) {
	t.Parallel()
	field, found := reflect.TypeFor[Conduit]().FieldByName("Type")
	if named := parseRule(field.Tag.Get("rule")).enum; !found || !slices.Equal(named, content.Names()) {
		t.Errorf("manifests name the types %v, there are parsers for %v", named, content.Names())
	}
}

// Where a task could write past the monitor, a conduit has no type.
func TestOnlyTheMonitorWritesTypedConduits(t *testing.T) {
	t.Parallel()
	const ingress = "      ingress: true\n"
	for _, test := range []struct{ name, old, with, want string }{
		{"a file", ingress, "      type: topics\n", ""},
		{"lists", ingress, "      type: conduit-ids\n", ""},
		{"a tuple", "access: {read: [GET], write: [SET]}", "type: topics\n      access: {read: [GET]}", ""},
		{"a tuple that tasks write", "access: {read: [GET], write: [SET]}",
			"type: topics\n      access: {read: [GET], write: [SET]}", "spec.conduits[1].access.write: the tuples have a type"},
		{"from outside", ingress, ingress + "      type: topics\n", "spec.conduits[0].ingress: a conduit with a type has no ingress"},
		{"a directory", ingress, "      directory: true\n      type: topics\n",
			"spec.conduits[0].directory: a conduit with a type has no directory"},
		{"that leaves", ingress, "      egress: true\n      type: topics\n",
			"spec.conduits[0].egress: a conduit with a type has no egress"},
		{"a log in many files", ingress, "      type: access-log\n",
			"spec.conduits[0].paths[0].path: \"/corpus/private/{owner}/**\" means many files; a log of type access-log is one"},
		{"a log of tuples", "access: {read: [GET], write: [SET]}", "type: access-log\n      access: {read: [GET]}",
			"spec.conduits[1].type: a log of type access-log is a file"},
		{"another type", ingress, "      type: csv\n", "spec.conduits[0].type:"},
		{"a pipe", "      kind: pipe\n", "      kind: pipe\n      type: topics\n",
			"a conduit of kind pipe has no type"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := valid(t)
			if !strings.Contains(text, test.old) {
				t.Fatalf("the manifest has no %q", test.old)
			}
			err := check(strings.Replace(text, test.old, test.with, 1))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
}
