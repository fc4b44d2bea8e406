// SPDX-License-Identifier: BSD-2-Clause

package runtimeroot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
)

// values are those of --define.
var values = map[string]string{"HOME": "/opt/java", "COMMA": "/opt/a,b", "TWICE": "$(HOME)", "UP": "/opt/..",
	"NAME": "java"}

func TestDefinedRuntimes(t *testing.T) {
	named, err := Define([]string{
		"java=$(HOME),$(HOME)/jre,/usr/lib", "0x1f=/opt/$(NAME)/lib", "comma=$(COMMA)",
		"odd=/opt/it's,/opt/{{ 7 * 7 }},/opt/a=b $HOME",
		"literal=/opt/$(TWICE)",
	}, values)
	if err != nil {
		t.Fatal(err)
	}
	want := Named{
		"java": {"/opt/java", "/opt/java/jre", "/usr/lib"}, "0x1f": {"/opt/java/lib"}, "comma": {"/opt/a,b"},
		"odd": {"/opt/it's", "/opt/{{ 7 * 7 }}", "/opt/a=b $HOME"}, "literal": {"/opt/$(HOME)"},
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Error(diff)
	}
}

func TestRefusedDefinitionsOfRuntimes(t *testing.T) {
	for definition, want := range map[string]string{
		"java":               `"java": expected NAME=PATH,PATH…`,
		"=/lib":              `"" is not a name`,
		"-x=/lib":            `"-x" is not a name`,
		"Java=/lib":          `"Java" is not a name`,
		"a.b=/lib":           `"a.b" is not a name`,
		"../x=/lib":          `"../x" is not a name`,
		"java=":              `java: "" is not an absolute path`,
		"java=lib":           `java: "lib" is not an absolute path`,
		"java=/lib,":         `java: "" is not an absolute path; begin it with / (a comma separates paths; give one`,
		"java=/opt/a,b":      `java: "b" is not an absolute path; begin it with / (a comma separates paths; give one`,
		"java=/lib/../etc":   `java: "/lib/../etc" has the segment ".."`,
		"java=/lib/":         `java: "/lib/" has the segment ""`,
		"java=//lib":         `java: "//lib" has the segment ""`,
		"java=/lib/./a":      `java: "/lib/./a" has the segment "."`,
		"java=$(UP)/etc":     `java: "/opt/../etc" has the segment ".."`,
		"java=$(NAME)/lib":   `java: "java/lib" is not an absolute path`,
		"java=$(DATA)":       `java: "$(DATA)": $(DATA) is not defined; give --define DATA=…`,
		"java=/lib,/lib":     "java: /lib is listed twice",
		"java=/lib\x00":      "contains a NUL byte",
		"known=/usr":         "known is given twice; list all of its paths in one",
		"java=$(HOME),/x,/y": "",
	} {
		_, err := Define([]string{"known=/lib", definition}, values)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s is refused: %v", definition, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", definition, err, want)
		}
	}
}

// A task gets what it names, and nothing else: neither a path in the place of a name, nor paths of its
// own.
func TestRuntimeOfATask(t *testing.T) {
	named := Named{"java": {"/opt/java"}, "python": {"/usr"}}
	const remedy = "; name another one in spec.runtimeName, or have it defined: on Kubernetes in spec.runtimes of the JailPool, " +
		"else with shai monitor --runtime "
	for _, test := range []struct {
		spec  manifest.TaskSpec
		named Named
		want  []string
		fails string
	}{
		{spec: manifest.TaskSpec{RuntimeName: "java"}, named: named, want: []string{"/opt/java"}},
		{spec: manifest.TaskSpec{}, named: named},
		{spec: manifest.TaskSpec{RuntimeName: "/"}, named: named,
			fails: "names runtime /, and there is only java, python" + remedy + "/=PATH,…"},
		{spec: manifest.TaskSpec{RuntimeName: "perl"},
			fails: "names runtime perl, and there is none" + remedy + "perl=PATH,…"},
		{spec: manifest.TaskSpec{RuntimeName: "java", Runtime: []string{"/"}}, named: named,
			fails: "lists the paths of its runtime in spec.runtime, as a task no longer can; " + manifest.ChooseRuntime},
	} {
		got, err := test.named.Of(test.spec)
		switch {
		case test.fails != "" && (err == nil || err.Error() != test.fails):
			t.Errorf("%+v: %v, want %s", test.spec, err, test.fails)
		case test.fails == "" && (err != nil || cmp.Diff(test.want, got) != ""):
			t.Errorf("%+v: %v, %v, want %v", test.spec, got, err, test.want)
		}
	}
}
