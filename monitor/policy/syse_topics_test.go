// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// sysETopics are the names of the list in the example pipeline's facts.
func sysETopics(t *testing.T) (names []string) {
	t.Helper()
	file, err := os.Open("../../crds/examples/syse/facts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for decoder := yaml.NewDecoder(file); ; {
		var source struct {
			Spec struct {
				Inline []struct {
					Conduit, Says string
					Tuples        [][]string
				}
			}
		}
		err := decoder.Decode(&source)
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range source.Spec.Inline {
			for _, tuple := range said.Tuples {
				if said.Conduit == "topics" && said.Says == "topic" {
					names = append(names, tuple[0])
				}
			}
		}
	}
}

// Whatever is in a history, at most three topics of the list come of it. The policy counts bytes, so
// that this depends on the names in the list: all choices of one to four of them are tried, the same
// one several times among them.
func TestSysEWritesThreeTopicsAtMost(t *testing.T) {
	names := sysETopics(t)
	if len(names) < 4 {
		t.Fatalf("the list of topics is %v", names)
	}
	policies := sysePolicies(t)
	held := mustBindTemplate(t, policies["search-history"], "alice", "de").Label("history:alice/de")
	target := Conduit{Name: "topics:alice", Kind: TupleConduit, Type: "topics",
		Policy: mustBindTemplate(t, policies["topics"], "alice")}
	var said []string
	for _, name := range names {
		said = append(said, fmt.Sprintf("topics says topic [%q]", name))
	}
	state := stateOf(t, said...)
	var try func(chosen []string, from int)
	try = func(chosen []string, from int) {
		if len(chosen) > 0 {
			update := &Update{}
			for _, name := range chosen {
				update.Facts = append(update.Facts, Fact{Conduit: target.Name, Relation: "topic",
					Arguments: []Value{String(name)}, Positioned: true, Offset: update.NewLength})
				update.NewLength += int64(len(fmt.Sprintf("topic(%q)\n", name)))
			}
			found := Decide(Write, held, target, state, Environment{Session: session("alice", "de"), Update: update})
			if found.Allowed != (len(chosen) <= 3) {
				t.Errorf("%v, %d bytes: allowed is %v: %s", chosen, update.NewLength, found.Allowed, found.Reason)
			}
		}
		if len(chosen) == 4 {
			return
		}
		for i := from; i < len(names); i++ {
			try(append(chosen[:len(chosen):len(chosen)], names[i]), i)
		}
	}
	try(nil, 0)
}
