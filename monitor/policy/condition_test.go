// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Every kind of condition survives JSON, holds where it should and not where it
// should not, and fails without what it asks about.
func TestConditions(t *testing.T) {
	p := mustLibrary(t, "private", "alice")
	state := StateOf(mustFacts(t, `l says f ["a",7,{"time":"2026-06-01T12:00:00Z"}]`, `l@3 says g [1]`),
		NewConduitTable(Conduit{ID: 5, Name: "/5", Length: 10, Measured: true, Policy: p}, Conduit{ID: 6, Name: "/6"}))
	environment := Environment{Now: noon, Session: &Session{Principal: "a", Key: "ff", Region: "r",
		IP: netip.MustParseAddr("::ffff:10.0.0.1")}}
	digest := newDigest()
	digest.add(Fact{Arguments: []Value{Integer(1)}, Offset: 3, Positioned: true})
	tuple := NewTuple(String("a"), Integer(7), Time(noon))
	tests := []struct {
		condition Condition
		holds     bool
		json      string
	}{
		{Condition{Kind: FactPresent, Conduit: "l", Relation: "f", Tuple: tuple}, true,
			`{"kind":"present","conduit":"l","relation":"f","tuple":["a",7,{"time":"2026-06-01T12:00:00Z"}]}`},
		{Condition{Kind: FactPresent, Conduit: "m", Relation: "f", Tuple: tuple}, false, ""},
		{Condition{Kind: FactPresent, Relation: "f", Tuple: tuple}, false, ""},
		{Condition{Kind: FactAbsent, Conduit: "l", Relation: "f", Tuple: NewTuple(String("a"), Value{}, Value{})},
			false,
			`{"kind":"absent","conduit":"l","relation":"f","tuple":["a",null,null]}`},
		{Condition{Kind: FactAbsent, Conduit: "l", Relation: "f", Tuple: NewTuple(String("b"), Value{}, Value{})}, true,
			""},
		{Condition{Kind: FactPresentAt, Conduit: "l", Relation: "g", Tuple: NewTuple(Integer(1)), Number: 3}, true,
			`{"kind":"present-at","conduit":"l","relation":"g","tuple":[1],"number":3}`},
		{Condition{Kind: FactPresentAt, Conduit: "l", Relation: "g", Tuple: NewTuple(Integer(1)), Number: 4}, false,
			""},
		{Condition{Kind: FactsUnchangedAt, Conduit: "l", Relation: "g", Tuple: NewTuple(Value{}),
			Digest: digest.String()}, true, ""},
		{Condition{Kind: FactsUnchangedAt, Conduit: "l", Relation: "g", Tuple: NewTuple(Value{}), Digest: "00"}, false,
			""},
		{Condition{Kind: ClockBefore, Time: Time(noon)}, false,
			`{"kind":"before","time":{"time":"2026-06-01T12:00:00Z"}}`},
		{Condition{Kind: ClockBefore, Time: Time(noon.Add(1))}, true, ""},
		{Condition{Kind: ClockFrom, Time: Time(noon)}, true, ""},
		{Condition{Kind: ClockFrom, Time: Time(noon.Add(1))}, false, ""},
		{Condition{Kind: PrincipalIs, Value: "a"}, true, `{"kind":"principal","value":"a"}`},
		{Condition{Kind: PrincipalIs, Value: "ff"}, true, ""},
		{Condition{Kind: PrincipalIs}, false, ""},
		{Condition{Kind: RegionIs, Value: "s"}, false, ""},
		{Condition{Kind: AddressIs, Value: "10.0.0.1"}, true, ""},
		{Condition{Kind: ConduitExists, Number: 5}, true, `{"kind":"exists","number":5}`},
		{Condition{Kind: ConduitExists, Number: 7}, false, ""},
		{Condition{Kind: ConduitPolicyIs, Number: 5, Digest: p.ID().String()}, true, ""},
		{Condition{Kind: ConduitPolicyIs, Number: 6, Digest: p.ID().String()}, false, ""},
		{Condition{Kind: ConduitPolicyIs, Number: 6, Digest: nobody.ID().String()}, true, ""},
		{Condition{Kind: ConduitLengthIs, Conduit: "/5", Number: 10}, true, ""},
		{Condition{Kind: ConduitLengthIs, Conduit: "/5", Number: 11}, false, ""},
		{Condition{Kind: "invented"}, false, ""},
	}
	for _, test := range tests {
		if holds := test.condition.Holds(state, environment); holds != test.holds {
			t.Errorf("%s: %v, want %v", test.condition, holds, test.holds)
		}
		if !strings.Contains("exists policy length before from present absent present-at unchanged-at",
			string(test.condition.Kind)) ||
			test.condition.Kind == ClockBefore || test.condition.Kind == ClockFrom {
			if test.condition.Holds(state, Environment{}) {
				t.Errorf("%s holds without clock and session", test.condition)
			}
		}
		text, err := json.Marshal(test.condition)
		if err != nil {
			t.Fatal(err)
		}
		if test.json != "" && string(text) != test.json {
			t.Errorf("%s: JSON is %s, want %s", test.condition, text, test.json)
		}
		var back Condition
		if err := json.Unmarshal(text, &back); err != nil || back != test.condition {
			t.Errorf("%s came back from JSON as %s, %v", text, back, err)
		}
	}
}

func TestUntil(t *testing.T) {
	early, late := noon.Add(time.Hour), noon.Add(2*time.Hour)
	conditions := []Condition{{Kind: ClockBefore, Time: Time(late)}, {Kind: ClockFrom, Time: Time(noon)},
		{Kind: ClockBefore, Time: Time(early)}}
	if instant, ok := Until(conditions); !ok || !instant.Equal(early) {
		t.Errorf("until %v %v, want %v", instant, ok, early)
	}
	if _, ok := Until(conditions[1:2]); ok {
		t.Error("a beginning was taken for an end")
	}
}

func TestValuesRefuseWhatTheyCannotHold(t *testing.T) {
	for _, text := range []string{`1.5`, `true`, `[]`, `{}`, `{"time":"tomorrow"}`, `{"time":"9999-01-01T00:00:00Z"}`,
		`{"time":"1677-01-01T00:00:00Z"}`, `99999999999999999999`} {
		var value Value
		if err := json.Unmarshal([]byte(text), &value); err == nil {
			t.Errorf("%s was read as %s", text, value)
		}
	}
	for _, fact := range []Fact{
		{Relation: "f"}, {Conduit: "l"}, {Conduit: "l", Relation: "f", Arguments: []Value{{}}},
		{Conduit: "l", Relation: "f", Arguments: make([]Value, MaxArguments+1)},
	} {
		if _, err := NewFactBase().Add(fact); !errors.Is(err, ErrInvalidFact) {
			t.Errorf("%+v was added: %v", fact, err)
		}
	}
}

func TestPositionedFacts(t *testing.T) {
	base := mustFacts(t, `l@3 says f ["a"]`, `l@5 says f ["a"]`, `l@4 says f ["b"]`)
	plain := Pattern{Conduit: "l", Relation: "f", Arguments: []Value{String("a")}}
	if base.Len() != 2 || !base.Has(plain) {
		t.Fatalf("%d facts, want 2", base.Len())
	}
	var offsets []int64
	base.Lookup(Pattern{Conduit: "l", Relation: "f", Arguments: []Value{{}}, Positioned: true}, func(fact Fact) bool {
		offsets = append(offsets, fact.Offset)
		return true
	})
	if !slices.Equal(offsets, []int64{3, 4, 5}) {
		t.Errorf("offsets %v", offsets)
	}
	if !base.Remove(mustFact(t, `l@3 says f ["a"]`)) || !base.Has(plain) ||
		base.Remove(mustFact(t, `l@3 says f ["a"]`)) {
		t.Error("removing one of two offsets")
	}
	if !base.Remove(mustFact(t, `l says f ["a"]`)) || base.Has(plain) ||
		base.Has(Pattern{Conduit: "l", Relation: "f", Arguments: []Value{String("a")}, Positioned: true}) ||
		base.Len() != 1 {
		t.Error("removing everywhere")
	}
}

// Policies, labels and facts may be used by many at once (run with -race).
func TestConcurrentDecisions(t *testing.T) {
	policies := sysePolicies(t)
	state := syse(t)
	taint := mustBindTemplate(t, policies["worker"], "alice", "de").Label("worker")
	label := mustBindTemplate(t, policies["friends"], "bob").Label("/corpus/friends/bob/1.txt")
	want := mayRead(taint, label, state, Environment{Now: noon})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				if got := mayRead(taint, label, state,
					Environment{Now: noon, Explain: true}); !slices.Equal(got.Conditions, want.Conditions) {
					t.Errorf("%v, want %v", got.Conditions, want.Conditions)
				}
				policies["friends"].Candidates(taint, state, Environment{Now: noon})
			}
		})
	}
	group.Wait()
}
