// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mostMemory is what one decision may allocate.
const mostMemory = 64 << 20

// mostTime is a bound for its processor time that holds on a busy machine, too, where the same work
// takes several times as long. On a free one, it is less than a quarter.
const mostTime = 400 * time.Millisecond

// processorTime is what the process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// hostileFacts are many facts, short and long, that policies can join.
func hostileFacts(t testing.TB) *FactIndex {
	t.Helper()
	var builder FactBuilder
	add := func(relation string, count int, arguments func(i int) []Value) {
		for i := range count {
			if err := builder.Add(Fact{Conduit: "big", Relation: relation, Arguments: arguments(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	add("s", 100_000, func(i int) []Value { return []Value{Integer(int64(i))} })
	add("r", 100_000, func(i int) []Value { return []Value{String("c"), Integer(int64(i)), Integer(int64(-i - 1))} })
	add("few", 60, func(i int) []Value { return []Value{Integer(int64(i))} })
	long := strings.Repeat("x", MaxString-6)
	add("long", 2000, func(i int) []Value { return []Value{String(fmt.Sprintf("%s%05d", long, i))} })
	add("wide", 200, func(i int) []Value {
		wide := make([]Value, MaxArguments)
		for j := range wide {
			wide[j] = String(fmt.Sprintf("%s%05d", long, i*16+j))
		}
		return wide
	})
	return builder.Index()
}

// literals joins copies of a text, in which # is a number.
func literals(count int, text string) string {
	all := make([]string, count)
	for i := range all {
		all[i] = strings.ReplaceAll(strings.ReplaceAll(text, "#+", fmt.Sprint(i+1)), "#", fmt.Sprint(i))
	}
	return strings.Join(all, ", ")
}

// Whatever a policy asks of whatever facts, a decision ends with an answer or with the limit's
// error, and takes no more memory than a decision may.
func TestHostilePoliciesEnd(t *testing.T) {
	state := StateOf(hostileFacts(t), NewConduitTable())
	rest := strings.Repeat(", _", MaxArguments-1)
	tests := []struct {
		name, read string
		limited    bool // ends with the limit's error
	}{
		{"a join of two large relations", `read :- "big" says s(X), "big" says r("c", _, X).`, true},
		{"a product of two large relations", `read :- "big" says s(X), "big" says s(Y), add(Z, X, Y), "big" says none(Z).`, true},
		{"a product of many small relations", "read :- " + literals(20, `"big" says few(V#)`) + `, "big" says none(V0).`, true},
		{"a chain", "read :- " + literals(30, `"big" says r(_, V#, V#+)`) + ".", true},
		{"each over a large relation", `read :- each in "big" says s(X) { "big" says s(Y), add(Z, X, Y), "big" says none(Z) }.`, true},
		{"each inside each", `read :- each in "big" says s(X) { each in "big" says s(Y) { each in "big" says s(Z) { "big" says s(X) } } }.`, true},
		{"each that holds for all of too many", `read :- each in "big" says s(X) { ge(X, 0) }.`, true},
		{"long strings that are put together", `read :- "big" says long(X), concat(Y, "1", X), lt(Y, "").`, true},
		{"long strings that are taken apart", `read :- "big" says long(X), "big" says long(Y), concat(X, Z, "5"), concat(Y, W, "4"), lt(W, Z), lt(Z, W).`, true},
		{"wide tuples", `read :- "big" says wide(X` + rest + `), "big" says wide(Y` + rest + `), lt(X, Y), lt(Y, X).`, true},
		{"each over wide tuples", `read :- each in "big" says wide(X` + rest + `) { lt(X, "z") }.`, true},
		{"many clauses", strings.Repeat(`read :- "big" says s(X), "big" says s(Y), lt(X, Y), lt(Y, X). `, 200), true},
		{"an unequal pair", `read :- "big" says s(X), "big" says s(Y), neq(X, Y), lt(X, 0).`, true},
		{"a list that excludes", `read :- sKeyIs(K), each in "big" says s(X) { neq(X, K) }.`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := mustBind(t, test.read+" update :- true.")
			conduit := Conduit{Name: "x", Kind: FileConduit, Policy: p}
			other := mustBind(t, `read :- sKeyIs("a"), "big" says few(W), "big" says few(U).`)
			// The first decision builds what lasts in the index.
			Decide(Leave, Label{}, conduit, state, Environment{Session: session("a", "de")})
			for _, explain := range []bool{false, true} {
				environment := Environment{Session: session("a", "de"), Now: noon, Explain: explain}
				for name, decide := range map[string]func() (bool, error){
					"leave": func() (bool, error) { return answer(Decide(Leave, Label{}, conduit, state, environment)) },
					"read":  func() (bool, error) { return answer(Decide(Read, other.Label("y"), conduit, state, environment)) },
					"write": func() (bool, error) {
						to := Conduit{Name: "y", Policy: other}
						return answer(Decide(Write, p.Label("x"), to, state, environment))
					},
					"holds": func() (bool, error) { return asked(state, p.Read("x"), environment) },
				} {
					if explain && name != "leave" {
						continue // it costs what that costs, again and again
					}
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					begun := processorTime(t)
					allowed, err := decide()
					took := processorTime(t) - begun
					runtime.ReadMemStats(&after)
					t.Logf("%s (explained: %v): %v", name, explain, took.Round(time.Millisecond))
					if took > mostTime {
						t.Errorf("%s (explained: %v) took %v of processor time", name, explain, took)
					}
					if used := after.TotalAlloc - before.TotalAlloc; used > mostMemory {
						t.Errorf("%s (explained: %v) took %d MiB", name, explain, used>>20)
					}
					if err != nil && (allowed || !errors.Is(err, ErrTooManySteps)) {
						t.Errorf("%s: allowed %v, %v", name, allowed, err)
					}
					if name == "leave" && test.limited != (err != nil) {
						t.Errorf("leave: %v; limited should be %v", err, test.limited)
					}
				}
			}
		})
	}
}

func answer(decision Decision) (bool, error) { return decision.Allowed, decision.Err }
