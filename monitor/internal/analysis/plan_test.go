// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"testing"

	"pgregory.net/rapid"
)

func TestInstanceName(t *testing.T) {
	for want, instance := range map[string]Instance{
		"indexer":                   {Task: "indexer"},
		"worker(alice, de)":         {Task: "worker", Arguments: []string{"alice", "de"}},
		`worker("alice, de", "")`:   {Task: "worker", Arguments: []string{"alice, de", ""}},
		`worker("\"alice\"", "a)")`: {Task: "worker", Arguments: []string{`"alice"`, "a)"}},
		"worker(ä b@c.d)":           {Task: "worker", Arguments: []string{"ä b@c.d"}},
	} {
		if got := instance.Name(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNoTwoInstancesHaveOneName(t *testing.T) {
	values := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune(`a, ()"\`)), 0, 4, -1), 1, 3)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := Instance{"w", values.Draw(rt, "a")}, Instance{"w", values.Draw(rt, "b")}
		if (a.Name() == b.Name()) != (a.compare(b) == 0) {
			rt.Errorf("%q and %q are %s and %s", a.Arguments, b.Arguments, a.Name(), b.Name())
		}
	})
}
