// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// raisingTasks is a pipeline with tasks a to d, of which each names others: "b", "a, c".
func raisingTasks(raisesTo ...string) string {
	head := "---\napiVersion: shai.dev/v1alpha1\nkind: "
	var out strings.Builder
	out.WriteString("apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: open}\n" +
		"spec: {text: \"read :- true.\"}\n")
	for i, others := range raisesTo {
		fmt.Fprintf(&out, "%sTask\nmetadata: {name: %c}\nspec:\n  command: [/bin/true]\n  taint: {name: open}\n"+
			"  raisesTo: [%s]\n", head, 'a'+rune(i), others)
	}
	return out.String() + head + "Pipeline\nmetadata: {name: p}\nspec: {tasks: [a, b, c, d]}\n"
}

// A task that others become does not start by itself: one that starts has to become it, perhaps
// in several steps.
func TestTasksThatNeverStart(t *testing.T) {
	const why = ": since a task that others become does not start by itself, none of them would ever start in pipeline p; " +
		"remove it, or name one of them in raisesTo of a task that starts"
	for _, test := range []struct {
		raisesTo []string
		want     []string // parts of the errors
	}{
		{[]string{"b, c", "c", "d", ""}, nil},
		{[]string{"b", "c", "b", ""}, nil}, // b and c are as restrictive, and a becomes them
		{[]string{"a", "", "", ""},
			[]string{"Task a: spec.raisesTo[0]: a task raises its taint to that of another task, not to its own; remove it"}},
		{[]string{"b", "a", "", ""}, []string{"Task a: spec.raisesTo[0]: a becomes b, which becomes a" + why}},
		{[]string{"d, b", "c", "a", ""},
			[]string{"Task a: spec.raisesTo[1]: a becomes b, which becomes c, which becomes a" + why}},
		{[]string{"b", "a", "d", "c"}, []string{"a becomes b, which becomes a", "c becomes d, which becomes c"}},
		{[]string{"", "c", "b, a", ""}, []string{"b becomes c, which becomes b"}},
		{[]string{"b", "b, a", "", ""},
			[]string{"a becomes b, which becomes a", "Task b: spec.raisesTo[0]: a task raises"}},
		{[]string{"e", "", "", ""}, []string{`Task a: spec.raisesTo[0]: "e" is not one of the tasks of pipeline p`}},
	} {
		err := check(raisingTasks(test.raisesTo...))
		var got []string
		if err != nil {
			got = strings.Split(strings.TrimSpace(err.Error()), "\n")
		}
		if len(got) != len(test.want) {
			t.Errorf("%q: %v; want %q", test.raisesTo, err, test.want)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%q: %s; want %s", test.raisesTo, got[i], want)
			}
		}
	}
}
