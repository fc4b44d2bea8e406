// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/policy"
)

const manifestOfFriends = `apiVersion: shai.dev/v1alpha1
kind: Policy
metadata:
  name: close-friends
spec:
  text: | # of a person
    policy close_friends(owner) {
      read :- sKeyIs(owner).
      read :- sKeyIs(K), concat(F, "é😀/", owner), F says friend(K).
    }
`

// manifestOf is a Policy that includes the one above, with its name at "|".
const manifestOf = `# two documents
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: composed}
spec:
    text: |
            policy composed(who) includes close-friends(who) {
              update :- sKeyIs(who).
            }
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: bare}
spec: {text: 'read :- sKeyIs("a").'}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: bare-too}
spec:
  text: read :- sKeyIs("a").
`

// where returns the place of the n-th occurrence of a word in a text.
func where(t *testing.T, text, word string, n int) position {
	t.Helper()
	at := 0
	for ; n > 0; n-- {
		next := strings.Index(text[at:], word)
		if next < 0 {
			t.Fatalf("%q has no %q", text, word)
		}
		at += next + 1
	}
	line := strings.LastIndex(text[:at-1], "\n") + 1
	return position{strings.Count(text[:at-1], "\n"), units(text[line : at-1])}
}

func TestManifestsDiagnosticsStandInTheFile(t *testing.T) {
	e := newEditor(t, map[string]string{"friends.yaml": manifestOfFriends, "f_test.yaml": "kind: ["})
	if found := e.open("composed.yaml", manifestOf); len(found) > 0 {
		t.Errorf("policies without a mistake, which include one of another manifest: %+v", found)
	}
	if found := e.open("f_test.yaml", "kind: ["); len(found) > 0 {
		t.Errorf("tests of policies are no manifest: %+v", found)
	}
	for _, test := range []struct {
		name, text, code, at string
		nth                  int
	}{
		{"in a block", strings.Replace(manifestOfFriends, "F says friend(K)", "F says friend(Q)", 1),
			"variable-used-once", "K)", 1},
		{"after wide characters", strings.Replace(manifestOfFriends, "F says", "skeyIs(K), F says", 1),
			string(policy.CodeUnknownPredicate), "skeyIs", 1},
		{"in an indented block", strings.Replace(manifestOf, "sKeyIs(who)", "skeyIs(who)", 1),
			string(policy.CodeUnknownPredicate), "skeyIs", 1},
		{"in quotes", strings.Replace(manifestOf, `'read :- sKeyIs`, `'read :- skeyIs`, 1),
			string(policy.CodeUnknownPredicate), "skeyIs", 1},
		{"in quotes that change the text, at the field", strings.Replace(manifestOf, `'read :- sKeyIs("a").'`,
			`"read :- skeyIs(\"a\")."`, 1), string(policy.CodeUnknownPredicate), `"read`, 1},
		{"in a plain text", strings.Replace(manifestOf, `text: read :- sKeyIs`, `text: read :- skeyIs`, 1),
			string(policy.CodeUnknownPredicate), "skeyIs", 1},
		{"in another field", strings.Replace(manifestOfFriends, "spec:", "spec:\n  mode: Enforced", 1),
			"manifest-invalid", "Enforced", 1},
		{"no YAML", strings.Replace(manifestOfFriends, "metadata:", "metadata", 1), "manifest-invalid", "", 0},
	} {
		e := newEditor(t, map[string]string{"friends.yaml": manifestOfFriends})
		file := "composed.yaml"
		if !strings.Contains(test.text, "composed") {
			file = "friends.yaml" // as it is written, not as it is stored
		}
		found := e.open(file, test.text)
		i := slices.IndexFunc(found, func(one diagnostic) bool { return one.Code == test.code })
		if i < 0 {
			t.Errorf("%s: no %s in %+v", test.name, test.code, found)
			continue
		}
		if test.nth == 0 {
			continue
		}
		if got, want := found[i].Range.Start, where(t, test.text, test.at, test.nth); got != want {
			t.Errorf("%s: at %+v, want %+v: %+v", test.name, got, want, found[i])
		}
	}
}

func TestWordsInManifests(t *testing.T) {
	e := newEditor(t, map[string]string{"friends.yaml": manifestOfFriends})
	e.open("composed.yaml", manifestOf)
	place := func(word string, nth, further int) placeParams {
		at := where(t, manifestOf, word, nth)
		at.Character += further
		return e.place("composed.yaml", at)
	}
	for _, test := range []struct {
		word         string
		nth, further int
		want         string
	}{
		{"sKeyIs", 1, 2, "authenticated"}, {"close-friends", 1, 4, "F says friend(K)"},
		{"who) {", 1, 1, "of type string"}, {"read :- sKeyIs(\"a\").\n", 1, 9, "authenticated"},
		{"kind", 1, 1, ""}, {"metadata", 2, 1, ""}, {"'read :- sKeyIs", 1, 10, "authenticated"},
	} {
		var got *hover
		e.call("textDocument/hover", place(test.word, test.nth, test.further), &got)
		if (got != nil) != (test.want != "") || got != nil && !strings.Contains(got.Contents.Value, test.want) {
			t.Errorf("%s: %+v, want %q", test.word, got, test.want)
		}
	}
	var found []location
	e.call("textDocument/definition", place("close-friends", 1, 1), &found)
	want := location{e.uri("friends.yaml"), textRange{where(t, manifestOfFriends, "close-friends", 1),
		position{3, len("  name: close-friends")}}}
	if len(found) != 1 || found[0] != want {
		t.Errorf("definition: %+v, want %+v", found, want)
	}
	for word, want := range map[string]string{"close-friends": "close-friends", "sKeyIs": "timeIs", "kind": ""} {
		var items []completionItem
		e.call("textDocument/completion", place(word, 1, 0), &items)
		has := slices.ContainsFunc(items, func(one completionItem) bool { return one.Label == want })
		if has != (want != "") || want == "" && len(items) > 0 {
			t.Errorf("completion at %s: %+v", word, items)
		}
	}
}

func TestInManifestsOnlyVariablesAreRenamed(t *testing.T) {
	e := newEditor(t, nil)
	e.open("friends.yaml", manifestOfFriends)
	rename := func(word string, nth int, name string) (edit workspaceEdit, err error) {
		at := where(t, manifestOfFriends, word, nth)
		err = e.try("textDocument/rename", renameParams{identifier{e.uri("friends.yaml")}, at, name}, &edit)
		return edit, err
	}
	edit, err := rename("K)", 2, "Person")
	edits := edit.Changes[e.uri("friends.yaml")]
	if err != nil || len(edits) != 2 || edits[1].Range.Start != where(t, manifestOfFriends, "K)", 2) {
		t.Errorf("a variable: %+v, %v", edit, err)
	}
	for word, reason := range map[string]string{"owner": "manifests that refer to the policy",
		"close_friends": "an object that other manifests name"} {
		if _, err := rename(word, 1, "other"); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", word, err, reason)
		}
	}
	var formatted []textEdit
	e.call("textDocument/formatting", documentParams{identifier{e.uri("friends.yaml")}}, &formatted)
	if len(formatted) > 0 {
		t.Errorf("the manifest is formatted: %+v", formatted)
	}
}
