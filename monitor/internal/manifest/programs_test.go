// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"strings"
	"testing"
)

// The path of a program is absolute and has one spelling, as it is written and once its
// variables have values.
func TestPathOfAProgram(t *testing.T) {
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
		err := resolveTask("  command: [\"" + path + "\"]\n")
		switch {
		case want == "" && err != nil:
			t.Errorf("%q is refused: %v", path, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "spec.command[0]") ||
			!strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", path, err, want)
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
