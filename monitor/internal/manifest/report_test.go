// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const shared = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: everyone}
spec: {text: "policy everyone { read :- true. }"}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: reader}
spec: {command: [/bin/true], taint: {name: everyone}, reads: [documents]}
---
`

// claiming is a pipeline with one conduit.
func claiming(name, conduit string) string {
	return fmt.Sprintf("apiVersion: shai.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: %s}\n"+
		"spec:\n  tasks: [reader]\n  variables: [{name: PORT, value: \"80\"}]\n  keyValue: {socket: /s}\n  conduits:\n    - {name: documents, %s}\n", name, conduit)
}

func file(path string) string {
	return fmt.Sprintf("kind: file, paths: [{path: %q, policy: {name: everyone}}]", path)
}

func tuple(path string) string {
	return fmt.Sprintf("kind: tuple, access: {read: [GET]}, paths: [{path: %q, policy: {name: everyone}}]", path)
}

func listening(address string) string {
	return fmt.Sprintf("kind: connection, listen: %q, task: reader", address)
}

func TestPipelinesThatClaimOneConduit(t *testing.T) {
	for _, test := range []struct {
		first, second string
		overlap       bool
	}{
		{file("/a/**"), file("/a/**"), true},
		{file("/a/**"), file("/a/b/**"), true},
		{file("/a/{owner}/b"), file("/a/alice/{name}"), true},
		{file("/a/{owner}"), file("/a/*"), true},
		{file("/a/x{owner}"), file("/a/{owner}y"), true},
		{file("/a/x{owner}"), file("/a/y{owner}"), false},
		{file("/a/**"), file("/b/**"), false},
		{file("/a"), file("/a/b"), false},
		{tuple("profile:{owner}"), tuple("profile:alice"), true},
		{tuple("profile:{owner}"), tuple("history:{owner}"), false},
		{listening("127.0.0.1:80"), listening("127.0.0.1:80"), true},
		{listening("127.0.0.1:80"), listening("0.0.0.0:80") + `, service: "example.org:80"`, true},
		{listening("127.0.0.1:80"), listening("127.0.0.2:80"), false},
		{listening("127.0.0.1:80"), listening("127.0.0.1:81"), false},
		{listening("127.0.0.1:$(PORT)"), listening("127.0.0.1:80"), true},
		{listening("$(ADDRESS):80"), listening("$(ADDRESS):80"), true},
		{listening("$(ADDRESS):80"), listening("$(ADDRESS):81"), false},
	} {
		_, err := Parse(
			Source{Name: "shared", Text: shared},
			Source{Name: "one", Text: claiming("first", test.first)},
			Source{Name: "two", Text: claiming("second", test.second)},
		).Bundle()
		if !test.overlap {
			if err != nil {
				t.Errorf("%s and %s: %v", test.first, test.second, err)
			}
			continue
		}
		found, _ := err.(Errors) //nolint:errorlint // nil when it is another
		if len(found) != 1 || found[0].Code != Overlap || found[0].Name != "second" ||
			found[0].Position.File != "two" ||
			!strings.Contains(found[0].Message, "of pipeline first (one:") {
			t.Errorf("%s and %s: %v", test.first, test.second, err)
		}
	}
}

func TestOverlapNamesPipelinesPathsAndPlaces(t *testing.T) {
	err := check(shared + claiming("first", file("/a/**")) + "---\n" + claiming("second", file("/a/{owner}")))
	want := `f:30:52: Pipeline second: spec.conduits[0].paths[0].path: pipeline second claims "/a/{owner}", ` +
		`which can match the same conduits as "/a/**" of pipeline first (f:20:52); give each conduit to one pipeline: make one of the paths narrower`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAmbiguousPathsOfOnePipeline(t *testing.T) {
	conduit := `kind: file, paths: [{path: "/a/{x}/c", policy: {name: everyone}}, {path: "/a/b/{y}", policy: {name: everyone}}]`
	err := check(shared + claiming("first", conduit))
	if err == nil || !strings.Contains(err.Error(),
		`spec.conduits[0].paths[1].path: "/a/b/{y}" and "/a/{x}/c" (f:20:52) can match the same conduit, and neither is more specific`) {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	warnings := func(text string) (list []string) {
		report, err := Parse(Source{Name: "f", Text: text}).Report()
		if err != nil || len(report.Errors) > 0 {
			t.Fatal(err, report.Errors)
		}
		for _, one := range report.Warnings {
			list = append(list, one.Object()+": "+one.Message)
		}
		return list
	}
	for _, test := range []struct {
		old, new string
		want     []string
	}{
		{"", "", nil},
		{"taint: {name: everyone}", "taint: {name: nobody}",
			[]string{"Policy everyone: no task and no conduit uses the policy"}},
		{"true. }\"", "true. }\", mode: Audit",
			[]string{"Policy everyone: in mode Audit, accesses that the policy forbids are recorded, not denied"}},
		{"true. }\"", "true. }\", mode: Warn",
			[]string{"Policy everyone: in mode Warn, accesses that the policy forbids are recorded, not denied"}},
		{"  tasks:", "  mode: baseline\n  tasks:",
			[]string{"Pipeline p: in mode baseline, nothing is enforced and tasks run without a sandbox"}},
		{"  tasks:", "  mode: audit\n  tasks:",
			[]string{"Pipeline p: in mode audit, accesses that policies forbid are recorded, not denied"}},
		{", reads: [documents]", "", []string{`Pipeline p: no task reads or writes conduit "documents"`}},
		{"name: p}", "name: p}\n# none", nil},
	} {
		text := shared + claiming("p", `kind: file, paths: [{path: "/a", policy: {name: nobody}}]`) + `---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: nobody}
spec: {text: "policy nobody { read :- sKeyIs(\"x\"). }"}
`
		if diff := cmp.Diff(test.want, warnings(strings.Replace(text, test.old, test.new, 1))); diff != "" {
			t.Errorf("%s: %s", test.new, diff)
		}
	}
}

func TestExamplesCauseNoWarnings(t *testing.T) {
	sources, err := Read(nil, examples)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Parse(sources...).Report()
	if err != nil || len(report.Errors)+len(report.Warnings) > 0 {
		t.Errorf("%v %v %v", err, report.Errors, report.Warnings)
	}
}

// A mistake in a policy's text is placed in the file and in the text.
func TestPlaceWithinAText(t *testing.T) {
	text := "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec:\n  text: |\n    policy a {\n      read :- wrong(1).\n    }\n"
	report, err := Parse(Source{Name: "f", Text: text}).Report()
	if err != nil || len(report.Errors) != 1 {
		t.Fatal(err, report.Errors)
	}
	got := report.Errors[0]
	if got.Position != (Position{"f", 7, 15}) || got.Within != (Position{Line: 2, Column: 11}) {
		t.Errorf("at %v, within %v", got.Position, got.Within)
	}
}
