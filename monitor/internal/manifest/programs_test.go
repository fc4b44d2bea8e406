// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"strings"
	"testing"
)

// Paths of the machine are absolute and have one spelling, as they are written and once
// their variables have values.
func TestPathsOfTheMachine(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/lib":         "",
		"/":                "", // a monitor refuses it: it holds the data
		"$(BIN)":           "",
		"$(BIN)/lib":       "",
		"/opt/$(NAME)/lib": "",
		"lib":              "is not an absolute path",
		"./lib":            "is not an absolute path",
		"$(NAME)/lib":      "is not an absolute path",
		"/usr/../srv/data": `has the segment ".."`,
		"/usr/lib/..":      `has the segment ".."`,
		"/usr/./lib":       `has the segment "."`,
		"/usr//lib":        `has the segment ""`,
		"/usr/lib/":        `has the segment ""`,
		"//usr/lib":        `has the segment ""`,
		"$(BIN)/../secret": `has the segment ".."`,
		"$(UP)/lib":        `has the segment ".."`,
		`/usr/l\0ib`:       "contains a NUL byte",
	} {
		for field, line := range map[string]string{
			"spec.runtime[0]": "  command: [/bin/true]\n  runtime: [\"" + path + "\"]\n",
			"spec.command[0]": "  command: [\"" + path + "\"]\n",
		} {
			err := resolveTask(line)
			switch {
			case want == "" && err != nil:
				t.Errorf("%s %q is refused: %v", field, path, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), field) ||
				!strings.Contains(err.Error(), want)):
				t.Errorf("%s %q: %v, want %s", field, path, err, want)
			}
		}
	}
}

// resolveTask checks a task with these fields, then resolves it.
func resolveTask(fields string) error {
	text := "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: open}\nspec: {text: \"policy open { read :- true. }\"}\n---\n" +
		"apiVersion: shai.dev/v1alpha1\nkind: Task\nmetadata: {name: one}\nspec:\n" + fields +
		"  taint: {name: open}\n---\n" +
		"apiVersion: shai.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: demo}\nspec: {tasks: [one]}\n"
	bundle, err := Parse(Source{Name: "f", Text: text}).Bundle()
	if err != nil {
		return err
	}
	_, err = bundle.Resolve("demo", map[string]string{"BIN": "/bin", "NAME": "name", "UP": "/bin/.."})
	return err
}
