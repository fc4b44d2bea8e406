// SPDX-License-Identifier: BSD-2-Clause

package knownfacts

import (
	"strings"
	"testing"

	"shai.dev/monitor/policy"
)

func TestFactsThatTheMonitorCannotUseAreRefused(t *testing.T) {
	key, other := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	texts := func(values ...string) (tuple []policy.Value) {
		for _, value := range values {
			tuple = append(tuple, policy.String(value))
		}
		return tuple
	}
	for _, test := range []struct {
		name, conduit, relation string
		tuples                  [][]policy.Value
		want                    string // part of what is said of the last one
	}{
		{"a region", Regions, Prefix, [][]policy.Value{texts("192.0.2.0/24", "de")}, ""},
		{"a region twice", Regions, Prefix, [][]policy.Value{texts("192.0.2.0/24", "de"), texts("192.0.2.0/24", "de")}, ""},
		{"two regions", Regions, Prefix, [][]policy.Value{texts("192.0.2.0/24", "de"), texts("192.0.2.9/24", "us")}, "would be in none"},
		{"two regions in two families", Regions, Prefix,
			[][]policy.Value{texts("192.0.2.0/24", "de"), texts("::ffff:192.0.2.0/120", "us")}, "would be in none"},
		{"no network", Regions, Prefix, [][]policy.Value{texts("300.0.0.0/8", "de")}, "is no network"},
		{"no region", Regions, Prefix, [][]policy.Value{texts("192.0.2.0/24", "")}, "is no name of a region"},
		{"a number as region", Regions, Prefix, [][]policy.Value{{policy.String("192.0.2.0/24"), policy.Integer(1)}}, "in quotes"},
		{"three values", Regions, Prefix, [][]policy.Value{texts("192.0.2.0/24", "de", "x")}, "expected a network"},
		{"a key", Population, Key, [][]policy.Value{texts("alice", key), texts("alice", strings.ToUpper(key)), texts("bob", other)}, ""},
		{"two keys", Population, Key, [][]policy.Value{texts("alice", key), texts("alice", other)}, "would have none"},
		{"no key", Population, Key, [][]policy.Value{texts("alice", "zz")}, "is not an Ed25519 key"},
		{"no texts", Population, Key, [][]policy.Value{{policy.Integer(1), policy.String(key)}}, "in quotes"},
		{"no relation", "list", "bad relation!", [][]policy.Value{nil}, "is no name of a relation"},
		{"a variable", "list", "Friend", [][]policy.Value{nil}, "is no name of a relation"},
		{"for policies", "list", "prefix", [][]policy.Value{{policy.Integer(1)}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c Checker
			for i, values := range test.tuples {
				err := c.Check(test.conduit, test.relation, policy.NewTuple(values...))
				switch last := i == len(test.tuples)-1; {
				case (!last || test.want == "") && err != nil:
					t.Errorf("tuple %d: %v", i, err)
				case last && test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("%v, want %q", err, test.want)
				}
			}
		})
	}
}
