// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"strings"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// tainted is the pipeline of onePolicy with a pipe and a task more, each with the given policy.
func tainted(t testing.TB, documents, pipe, task string) (*Plan, *catalog.Catalog) {
	t.Helper()
	plan, c := onePolicyAnd(t, []catalog.PolicyText{
		{Name: "pipe", File: "pipe", Text: pipe}, {Name: "same", File: "same", Text: task},
	}, documents, "/d/a/1", "/d/b/1")
	plan.Sets = append(plan.Sets, Set{Name: "pipe", Catalog: "one/pipe", Kind: policy.PipeConduit,
		Policy: &catalog.Reference{Policy: "pipe"}, From: "indexer", To: "same"})
	plan.Tasks = append(plan.Tasks, Task{Name: "same", Taint: catalog.Reference{Policy: "same"}})
	return plan, c
}

// What facts, and conduits that come, give a task is found although they say nothing of an instance: its taint names
// a reader, or asks for other conduits and their policies, as the data's policy may.
func TestChangesThatReachTaints(t *testing.T) {
	const (
		forA, forB, noneButZ = `read :- sKeyIs("a"). `, `read :- sKeyIs("b"). `, `update :- sKeyIs("z"). `
		forBoth              = forA + forB + `update :- true. `
		forOpen              = `read :- sKeyIs(K), "list" says open-to(K). `
		closed               = `read :- sKeyIs("b"), hasPol(1, P), isAsRestrictive(P.read, this.update). ` + noneButZ
		third                = `read :- sKeyIs("b"), cIdExists(3). `
	)
	for name, test := range map[string]struct {
		documents, pipe, task string
		reads, writes         []string
		changes               int // of what the task is given
	}{
		"a taint that names a reader":    {forOpen, "", forA, []string{"documents"}, nil, 2},
		"the data ask for a conduit":     {third, "", forB, []string{"documents"}, nil, 1},
		"a taint asks for a conduit":     {forBoth, "", forA + third, nil, []string{"documents"}, 1},
		"a taint compares with a policy": {forOpen, forBoth, forA + closed, nil, []string{"pipe"}, 2},
		"the data compare with a policy": {forOpen, closed, forB, []string{"pipe"}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			plan, c := tainted(t, test.documents+exit, test.pipe+exit, test.task+exit)
			plan.Tasks[2].Reads, plan.Tasks[2].Writes = test.reads, test.writes
			r := run(t, plan, c)
			task, changes := ofTask(canonical(r)), 0
			for step, change := range []func() (*catalog.Change, error){
				func() (*catalog.Change, error) { return addFacts(c, fact("list", "open-to", "a")) },
				func() (*catalog.Change, error) { return removeFacts(c, fact("list", "open-to", "a")) },
				func() (*catalog.Change, error) {
					_, change, err := c.Register([]string{"/d/c/1"}) // number 3
					return change, err
				},
			} {
				done, err := change()
				r, _ = follow(t, r, done, err)
				full := canonical(run(t, plan, c))
				if canonical(r) != full {
					t.Errorf("step %d: incremental\n%s\nfull\n%s", step, canonical(r), full)
				}
				if now := ofTask(full); now != task {
					task, changes = now, changes+1
				}
			}
			if changes != test.changes {
				t.Errorf("%d steps change something, want %d: the case is about something else", changes, test.changes)
			}
		})
	}
}

// ofTask returns what a result gives the task.
func ofTask(result string) string {
	_, task, _ := strings.Cut(result, "same ")
	task, _, _ = strings.Cut(task, "\n")
	return task
}
