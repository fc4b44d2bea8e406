// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/policy"
)

// An entry of the log opens the document that it names to the employee whose name it has, and
// nothing else; without the entry it is closed again. The analysis follows each entry as a full
// run would find it.
func TestEntriesOfTheLogOpenDocuments(t *testing.T) {
	plan, c := village(t)
	support := func(name, region string) Instance {
		return Instance{Task: "support", Arguments: []string{name, region}}
	}
	entry := policy.Fact{Conduit: "/support/accesses", Relation: "access", Positioned: true, Arguments: []policy.Value{
		policy.String("erin"), policy.String("/corpus/private/carol/1.txt"), policy.Time(now)}}
	strangers := entry
	strangers.Offset = 80
	strangers.Arguments = append([]policy.Value{policy.String("dave")}, entry.Arguments[1:]...)
	result := run(t, plan, c)
	before := readable(t, result, c, support("erin", "us"))
	franks := readable(t, result, c, support("frank", "de"))
	if before["/corpus/private/carol/1.txt"] || !before["/corpus/public/1.txt"] {
		t.Fatalf("without an entry, erin reads %v", before)
	}
	opened := map[string]bool{"/corpus/private/carol/1.txt": true}
	for name := range before {
		opened[name] = true
	}
	for _, step := range []struct {
		what        string
		remove, add []policy.Fact
		want        map[string]bool
	}{
		{"after the entry", nil, []policy.Fact{entry}, opened},
		{"after an entry of who is no employee", nil, []policy.Fact{strangers}, opened},
		{"without the entry", []policy.Fact{entry}, nil, before},
	} {
		change, err := c.AtOnce().ChangeLog(step.remove, step.add)
		if err != nil {
			t.Fatal(err)
		}
		if result, _, err = result.Update(context.Background(), change, Options{Now: now, search: true}); err != nil {
			t.Fatal(err)
		}
		for how, found := range map[string]*Result{"updated": result, "run anew": run(t, plan, c)} {
			if diff := cmp.Diff(step.want, readable(t, found, c, support("erin", "us"))); diff != "" {
				t.Errorf("%s, %s: erin reads (-want +got):\n%s", step.what, how, diff)
			}
			if diff := cmp.Diff(franks, readable(t, found, c, support("frank", "de"))); diff != "" {
				t.Errorf("%s, %s: frank reads (-want +got):\n%s", step.what, how, diff)
			}
			dave := Instance{Task: "worker", Arguments: []string{"dave", "fr"}}
			if readable(t, found, c, dave)["/corpus/private/carol/1.txt"] {
				t.Errorf("%s, %s: dave reads carol's document", step.what, how)
			}
		}
	}
}
