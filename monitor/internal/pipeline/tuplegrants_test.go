// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/kvcommand"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
)

// TestTupleGrants: a command that writes and tells what was there is for instances that
// may do both.
func TestTupleGrants(t *testing.T) {
	p := &Pipeline{spec: manifest.PipelineSpec{Conduits: []manifest.Conduit{{Name: "scores", Kind: manifest.KindTuple,
		Access: &manifest.Commands{Read: []string{"ZSCORE"}, Write: []string{"ZADD", "ZREM"}}}}}}
	read := analysis.Other{Set: "scores", Conduit: "score:alice"}
	write := analysis.Other{Set: "scores", Conduit: "score:alice", Write: true}
	stranger := analysis.Other{Set: "scores", Conduit: "score:bob"}
	grant := func(access kvcommand.Access, commands ...string) kvfilter.Grant {
		return kvfilter.Grant{Access: access, Commands: commands, Keys: []string{"score:alice"}}
	}
	for name, test := range map[string]struct {
		accesses []analysis.Other
		want     []kvfilter.Grant
	}{
		"read":  {[]analysis.Other{read}, []kvfilter.Grant{grant(kvcommand.Read, "ZSCORE")}},
		"write": {[]analysis.Other{write}, []kvfilter.Grant{grant(kvcommand.Write, "ZREM")}},
		"both": {[]analysis.Other{read, write},
			[]kvfilter.Grant{grant(kvcommand.Read, "ZSCORE"), grant(kvcommand.Read|kvcommand.Write, "ZADD", "ZREM")}},
		"another's": {[]analysis.Other{write, stranger}, []kvfilter.Grant{grant(kvcommand.Write, "ZREM"),
			{Access: kvcommand.Read, Commands: []string{"ZSCORE"}, Keys: []string{"score:bob"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if difference := cmp.Diff(test.want, p.tupleGrants(test.accesses)); difference != "" {
				t.Error(difference)
			}
		})
	}
}
