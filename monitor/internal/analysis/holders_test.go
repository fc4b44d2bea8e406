// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"shai.dev/monitor/policy"
)

func holdersOf(r *Result, what policy.Operation, conduit string) (names []string) {
	for holder := range r.Holders(what, conduit) {
		names = append(names, fmt.Sprint(holder))
	}
	return names
}

// Who may access a conduit without a class are those whose set has this access to it, and a file that is not
// registered is of those who may access the others of its policy.
func TestHolders(t *testing.T) {
	plan, c := village(t)
	r := run(t, plan, c)
	conduits := map[string]bool{}
	for _, one := range r.instances {
		for _, other := range one.Others {
			conduits[other.Conduit] = true
		}
	}
	isOne := map[bool]bool{}
	for conduit := range conduits {
		for _, what := range []policy.Operation{read, write} {
			var want []string
			for _, one := range r.instances {
				if slices.ContainsFunc(one.Others, func(o Other) bool {
					return o.Conduit == conduit && o.Write == (what == write)
				}) {
					values := plan.task(one.Instance.Task).values(one.Instance)
					want = append(want, fmt.Sprint(Holder{one.Instance.Task, values}))
				}
			}
			isOne[len(want) > 0] = true
			if got := holdersOf(r, what, conduit); !slices.Equal(got, want) {
				t.Errorf("%v may %s %s, want %v", got, what, conduit, want)
			}
		}
	}
	if len(isOne) != 2 {
		t.Error("everybody or nobody may access each conduit: this test shows nothing")
	}
	for _, owner := range []string{"alice", "bob"} {
		for _, kind := range []string{"private", "friends"} {
			directory := "/corpus/" + kind + "/" + owner + "/"
			got, want := holdersOf(r, read, directory+"new.txt"), holdersOf(r, read, directory+"1.txt")
			if !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("%v may read a new file in %s, want %v", got, directory, want)
			}
		}
	}
}

// An instance with many classes, which several goroutines share, has the accesses that one finds.
func TestManyClassesAreShared(t *testing.T) {
	many := workload{users: 700, friends: 2, seed: 1}
	plan, c := many.plan(), newCatalog(t, many.bundle())
	plan.Tasks = plan.Tasks[:1]
	if _, _, err := c.Register(many.documents()); err != nil {
		t.Fatal(err)
	}
	var alone []byte
	for _, parallel := range []int{1, 2} {
		r, err := Run(t.Context(), plan, c.State(), Options{Now: now, Parallel: parallel})
		if err != nil || len(r.instances[0].Reads) <= 1024 {
			t.Fatalf("the indexer reads no more than 1024 classes: this test is about nothing (%v)", err)
		}
		if parallel == 1 {
			alone = r.Encode()
		} else if !bytes.Equal(r.Encode(), alone) {
			t.Errorf("with %d goroutines the result differs", parallel)
		}
	}
}
