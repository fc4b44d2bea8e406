// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/policy"
)

const desk = `---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: desk}
spec:
  command: [/bin/true]
  runtimeName: system
  run: Always
  parameters: [user, region]
  taint: {name: user, arguments: {name: "{user}", region: "{region}"}}
  reads: [documents]
  writes: [counter]
`

var bareWithDesk = strings.Replace(pipelinetest.Bare, "tasks: [worker, collector]",
	"tasks: [worker, collector, desk]", 1) +
	"    - {name: counter, kind: connection, egress: true, listen: $(DESK), task: desk, sessions: 3}\n" + desk

// withDesk is the pipeline of pipelinetest.Bare, of which a second task serves users.
func withDesk(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, "bare", SessionLimits{})
	f.document("/open/1.txt")
	f.define["DESK"] = pipelinetest.FreeAddress(t)
	f.apply(bareWithDesk)
	return f
}

// Each task that serves users has an address, a service that its users sign, a way out and
// places of its own.
func TestEachTaskHasItsOwnEntrance(t *testing.T) {
	p := withDesk(t)
	for name, want := range map[string]struct {
		address string
		egress  policy.Conduit
		places  int
	}{
		"worker":    {p.define["LISTEN"], policy.Conduit{Name: "web", Kind: policy.ConnectionConduit}, 32},
		"desk":      {p.define["DESK"], policy.Conduit{Name: "counter", Kind: policy.ConnectionConduit}, 3},
		"collector": {"", policy.Conduit{}, 32},
	} {
		task := p.tasks[name]
		entrance := &task.entrance
		if task.service() != want.address || len(entrance.slots.channels) != want.places {
			t.Errorf("%s: users dial %q, %d of them; want %q, %d", name, task.service(), len(entrance.slots.channels),
				want.address, want.places)
		}
		if diff := cmp.Diff(want.egress.Name, entrance.egress().Name); diff != "" {
			t.Errorf("%s: data leaves through (-want +got):\n%s", name, diff)
		}
		if want.address == "" {
			continue
		}
		v, to := newSupervised(task), &pipelinetest.Supervisor{}
		to.Sessions = v
		p.must(v.Begin(pipelinetest.NewTask(name, 0), to))
		t.Cleanup(v.finish)
		settings := to.Told()[0].(supervision.Settings)
		if settings.Service != want.address || int(settings.Slots) != want.places {
			t.Errorf("the supervisor of %s is told of service %q with %d places", name, settings.Service, settings.Slots)
		}
	}
}

// Users of one task who take all its places leave those of another task free.
func TestPlacesAreOfOneTask(t *testing.T) {
	p := withDesk(t)
	full, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if _, err := p.tasks["desk"].entrance.slots.reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.tasks["desk"].entrance.slots.reserve(full); err == nil {
		t.Error("a fourth session of the desk begins")
	}
	reserved, err := p.tasks["worker"].entrance.slots.reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reserved.release()
}

// A task gets the socket of its own address, also after a restart and from the pipeline that
// is replaced.
func TestListeningSocketsAreOfOneTask(t *testing.T) {
	p := withDesk(t)
	opened := map[string]any{}
	for name, address := range map[string]string{"worker": p.define["LISTEN"], "desk": p.define["DESK"]} {
		task := p.tasks[name]
		for range 2 {
			held, err := task.listener()
			if err != nil || held != nil {
				t.Fatalf("%s itself gets %v, %v", name, held, err)
			}
			now := socketOf(&task.entrance)
			if before, again := opened[name]; again && before != now {
				t.Errorf("%s: another socket after a restart", name)
			}
			opened[name] = now
		}
		file := task.entrance.listening
		if task.entrance.acceptor != nil {
			file = task.entrance.acceptor.listener
		}
		listener, err := net.FileListener(file)
		p.must(err)
		if got := listener.Addr().String(); got != address {
			t.Errorf("%s listens at %s, want %s", name, got, address)
		}
		listener.Close()
	}
	bundle, err := manifest.Parse(manifest.Source{Name: "next.yaml", Text: bareWithDesk}).Bundle()
	p.must(err)
	resolved, err := bundle.Resolve(p.name, p.define)
	p.must(err)
	next, err := New(p.services, Definition{Resolved: resolved, Bind: p.services.state().Bind})
	p.must(err)
	p.HandOver(next)
	defer next.Close()
	for name, before := range opened {
		if socketOf(&next.tasks[name].entrance) != before || socketOf(&p.tasks[name].entrance) != nil {
			t.Errorf("%s: the next pipeline did not get this task's socket", name)
		}
	}
}

// socketOf returns what listens at an entrance, nil if nothing does.
func socketOf(e *entrance) any {
	switch {
	case e.listening != nil:
		return e.listening
	case e.acceptor != nil:
		return e.acceptor
	}
	return nil
}
