// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"testing"
	"time"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/policy"
)

// In a dynamic mode a document may be read if its data may go to the user, and to what the session can
// write to without being asked. The question leaves no trace in the running taint.
func TestWhatADynamicSessionMayUse(t *testing.T) {
	p := bare(t)
	p.analyze()
	open, diary, dropbox := p.conduit("/open/1.txt"), p.conduit("/diary/alice/1.txt"), p.conduit("/dropbox/1.txt")
	for _, test := range []struct {
		name string
		read policy.Conduit
		held []policy.Conduit
		want bool
	}{
		{"the user may get it", diary, nil, true},
		{"the user may not", dropbox, nil, false},
		{"something else could get it", diary, []policy.Conduit{open}, false},
		{"something else may get it", open, []policy.Conduit{open}, true},
	} {
		tracked := &tracked{leaving: p.tasks["worker"].entrance.egress(), running: decision.NewRunning(nil, test.held)}
		who := p.setOf("worker(alice, de)").subject
		before, _ := tracked.readSoFar()
		flow := decision.Flow{Who: who, What: policy.Read, Conduit: test.read}
		got := tracked.mayRead(flow, p.services.state(), time.Now())
		if after, _ := tracked.readSoFar(); got != test.want || after.Key() != before.Key() {
			t.Errorf("%s: %v, want %v; %q has been read", test.name, got, test.want, after.Key())
		}
	}
}

// A session that was allowed documents of more classes than are remembered counts as allowed all.
func TestAllowedClassesAreLimited(t *testing.T) {
	var allowed allowedClasses
	for class := range uint32(maxAllowed) {
		allowed.add(class)
	}
	allowed.add(0)
	if !allowed.has(0) || !allowed.has(maxAllowed-1) || allowed.has(maxAllowed+1) ||
		len(allowed.classes) != maxAllowed {
		t.Error("they are not remembered")
	}
	allowed.add(maxAllowed)
	if !allowed.has(maxAllowed+1) || len(allowed.classes) != maxAllowed {
		t.Error("one is forgotten, or there is no limit")
	}
}
