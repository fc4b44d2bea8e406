// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

const (
	openText   = `read :- true.`
	closedText = `update :- sKeyIs("nobody").`
)

// pair gives the policies of the two documents their texts.
func (s *stack) pair(left, right string) {
	s.t.Helper()
	policies := ""
	for name, text := range map[string]string{"left": left, "right": right} {
		policies += fmt.Sprintf("---\napiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: %s}\nspec: {text: %q}\n", name, text)
	}
	s.manifests["pair.yaml"] = policies
	public := `        - {path: "/corpus/public/**", policy: {name: public}}` + "\n"
	if text := s.manifests["pipeline.yaml"]; !strings.Contains(text, "/left/**") {
		s.manifests["pipeline.yaml"] = strings.Replace(text, public,
			public+`        - {path: "/left/**", policy: {name: left}}`+"\n"+
				`        - {path: "/right/**", policy: {name: right}}`+"\n", 1)
	}
}

// beginPair starts a stack with a pair of which the left one is open.
func beginPair(t *testing.T) *stack {
	t.Helper()
	s := newStack(t)
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	s.document("/left/1.txt")
	s.document("/right/1.txt")
	s.pair(openText, closedText)
	s.start()
	return s
}

// watcher is a client that connects again and again, and reads both documents for as
// long as each session lives.
type watcher struct {
	stack       *stack
	left, right uint32
	inForce     *atomic.Int64 // the bundle's number: left is open in odd ones; 0 while it is being changed
	refused     atomic.Int64  // connections without a session
	sessions    atomic.Int64  // that have read both
	mu          sync.Mutex
	faults      []string
}

// serve is one session. It must see the same throughout, namely one of the two bundles:
// the one in force, if that did not change.
func (w *watcher) serve() {
	began := w.inForce.Load()
	u, err := w.stack.connect("127.0.1.1")
	if err != nil {
		w.refused.Add(1)
		return
	}
	defer u.connection.Close()
	if answer, err := u.authenticate("alice", "alice"); err != nil || !strings.HasPrefix(answer, "bound ") {
		w.refused.Add(1)
		return
	}
	var first string
	for round := range 400 {
		seen := ""
		for _, id := range []uint32{w.left, w.right} {
			answer, err := u.say(fmt.Sprintf("read %d", id))
			if err != nil {
				return // the session has ended, which is its right
			}
			seen += strings.Fields(answer)[0] + " "
		}
		if round == 0 {
			first = seen
			w.sessions.Add(1)
		}
		want := map[int64]string{1: "text error ", 0: "error text "}
		switch {
		case seen != want[0] && seen != want[1]:
			w.fault("half a bundle: %s", seen)
		case seen != first:
			w.fault("two bundles in one session: first %s, then %s", first, seen)
		case began != 0 && w.inForce.Load() == began && seen != want[began%2]:
			w.fault("bundle %d is in force, and a session sees %s", began, seen)
		}
	}
	_, _ = u.say("quit")
}

func (w *watcher) fault(format string, arguments ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) < 10 {
		w.faults = append(w.faults, fmt.Sprintf(format, arguments...))
	}
}

// No session ever sees parts of two bundles, however often they change under load.
// Connections may be refused in the meantime.
func TestBundlesAreSwappedWholeUnderLoad(t *testing.T) {
	s := beginPair(t)
	w := &watcher{stack: s, left: s.id("/left/1.txt"), right: s.id("/right/1.txt"), inForce: new(atomic.Int64)}
	w.inForce.Store(1)
	var done atomic.Bool
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			for !done.Load() {
				w.serve()
			}
		})
	}
	defer clients.Wait()
	defer done.Store(true)
	for number := range int64(16) {
		before := w.sessions.Load()
		waiting.Until(t, "sessions read under the bundle", func() bool { return w.sessions.Load() >= before+2 })
		w.inForce.Store(0)
		if number%2 == 0 {
			s.pair(closedText, openText)
		} else {
			s.pair(openText, closedText)
		}
		s.apply()
		w.inForce.Store(number + 2)
	}
	done.Store(true)
	clients.Wait()
	for _, fault := range w.faults {
		t.Error(fault)
	}
	t.Logf("%d sessions, %d connections refused", w.sessions.Load(), w.refused.Load())
}

// A pipeline that a bundle does not concern keeps its tasks, its sessions and its
// capability sets; facts reach it all the same.
func TestUnchangedPipelinesAreNotDisturbed(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact("friends/bob", "friend", "alice")
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	_, only, found := strings.Cut(s.manifests["pipeline.yaml"], "kind: Pipeline\n")
	if !found {
		t.Fatal("the manifest has no pipeline")
	}
	s.options.Define["OTHER"] = pipelinetest.FreeAddress(t)
	s.manifests["other.yaml"] = "apiVersion: shai.dev/v1alpha1\nkind: Pipeline\n" +
		strings.NewReplacer("name: probe}", "name: other}", "/corpus/", "/other/", "$(LISTEN)",
			"$(OTHER)").Replace(only)
	s.document("/other/friends/bob/1.txt")
	s.document("/left/1.txt")
	s.document("/right/1.txt")
	s.pair(openText, closedText)
	s.open()
	s.apply()
	for _, name := range []string{"probe", "other"} {
		_, err := s.monitor.Analyze(t.Context(), api.AnalyzeRequest{Pipeline: name}, func(api.Progress) {})
		s.must(err)
		_, err = s.monitor.StartTask(t.Context(), name, "worker")
		s.must(err)
	}
	s.address, s.served = s.options.Define["OTHER"], "other"
	u := s.login("alice", "127.0.1.1")
	id := s.id("/other/friends/bob/1.txt")
	reads := func(u *user) string { return strings.Fields(u.must(fmt.Sprintf("read %d", id)))[0] }
	other := s.monitor.pipelines["other"]
	before := s.interceptions()["open"]
	natively := func() bool { return s.interceptions()["open"] == before }
	if reads(u) != "text" || !natively() {
		t.Fatal("alice does not read what a friend shares")
	}
	s.pair(closedText, openText)
	s.apply()
	if s.monitor.pipelines["other"] != other {
		t.Error("the pipeline was made anew")
	}
	if reads(u) != "text" || reads(s.login("alice", "127.0.1.1")) != "text" || !natively() {
		t.Error("the session has lost its document, or its instance the capability set")
	}
	if !s.monitor.analyses["other"].result.Current(s.monitor.state()) {
		t.Error("the analysis is of the bundle before")
	}
	// A fact that is removed with a bundle is removed for sessions that begin.
	s.facts = s.facts[:2]
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	s.apply()
	if s.monitor.pipelines["other"] != other {
		t.Error("a change of facts made the pipeline anew")
	}
	if late := s.login("alice", "127.0.1.1"); reads(late) != "error" {
		t.Error("a session that began after the friendship ended reads the document")
	}
}

// If a bundle cannot be put in force as a whole, the previous bundle stays in force, with
// its tasks running.
func TestAFailingSwapIsRolledBack(t *testing.T) {
	for _, test := range []struct {
		name   string
		breaks func(t *testing.T, s *stack)
		want   string
	}{
		{"a task that cannot start", func(_ *testing.T, s *stack) {
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], "[$(PROBE)/probe_worker]",
				"[$(PROBE)/missing]", 1)
		}, "restart task probe/worker"},
		{"an address that is taken", func(t *testing.T, s *stack) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			s.must(err)
			t.Cleanup(func() { listener.Close() })
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], "$(LISTEN)",
				listener.Addr().String(), 1)
		}, "listen on"},
		{"a taint that does not bind", func(_ *testing.T, s *stack) {
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"], "taint: {name: index}",
				`taint: {name: until, arguments: {end: soon}}`, 1)
			s.manifests["until.yaml"] = "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: until}\nspec: {text: \"policy until(end: time) { read :- timeIs(T), lt(T, end). }\"}\n"
		}, "taint of search"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := beginPair(t)
			hash := s.monitor.state().BundleHash()
			s.pair(closedText, openText)
			test.breaks(t, s)
			_, err := s.monitor.Apply(t.Context(), s.sources())
			var problem *api.Problem
			if err == nil || !strings.Contains(err.Error(), test.want) || !errors.As(err, &problem) {
				t.Fatalf("got %v, want a problem that says %q", err, test.want)
			}
			if s.monitor.state().BundleHash() != hash || s.monitor.bundle == nil {
				t.Error("the new bundle is in force")
			}
			s.awaitIdle()
			u := s.login("alice", "127.0.1.1")
			left, right := u.must(fmt.Sprintf("read %d", s.id("/left/1.txt"))),
				u.must(fmt.Sprintf("read %d", s.id("/right/1.txt")))
			if !strings.HasPrefix(left, "text") || !strings.HasPrefix(right, "error") {
				t.Errorf("left: %s, right: %s", left, right)
			}
			_, _ = u.say("quit")
			s.close()
			s.open()
			if s.monitor.state().BundleHash() != hash {
				t.Error("another bundle is durable")
			}
		})
	}
}

// In mode baseline the task itself listens at the address that the monitor had before and
// has again afterwards: a pipeline switches to the mode and back with its users' address.
func TestModeBaselineTakesTheAddressOverAndGivesItBack(t *testing.T) {
	s := beginPair(t)
	confined := s.manifests["pipeline.yaml"]
	apply := func(manifest string) {
		t.Helper()
		s.manifests["pipeline.yaml"] = manifest
		if _, err := s.monitor.Apply(t.Context(), s.sources()); err != nil {
			t.Fatal(err)
		}
	}
	apply(strings.Replace(confined, "mode: shai", "mode: baseline", 1))
	connection, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatalf("in mode baseline nobody listens: %v", err)
	}
	connection.Close()
	apply(confined)
	s.awaitIdle()
	u := s.login("alice", "127.0.1.1")
	if answer := u.must(fmt.Sprintf("read %d", s.id("/left/1.txt"))); !strings.HasPrefix(answer, "text") {
		t.Errorf("back in mode shai: %s", answer)
	}
	_, _ = u.say("quit")
}

// A task that has run to its end is not run again for a changed policy, and is when it
// is another task.
func TestWhatHasRunToItsEndIsKept(t *testing.T) {
	s := beginPair(t)
	if _, err := s.monitor.StartTask(t.Context(), "probe", "search"); err != nil {
		t.Fatal(err)
	}
	if status, err := s.monitor.WaitTask(t.Context(), "probe", "search"); err != nil || status.State != "Succeeded" {
		t.Fatalf("%+v: %v", status, err)
	}
	for _, test := range []struct {
		name   string
		change func()
		want   string
	}{
		{"another policy", func() { s.pair(closedText, openText) }, "Succeeded"},
		{"another task", func() {
			s.manifests["pipeline.yaml"] = strings.Replace(s.manifests["pipeline.yaml"],
				"register, search, worker, indexer", "register, search", 1)
		}, "Stopped"},
	} {
		test.change()
		if _, err := s.monitor.Apply(t.Context(), s.sources()); err != nil {
			t.Fatal(err)
		}
		if got := s.monitor.pipelines["probe"].Task("search").Status().State; got != test.want {
			t.Errorf("after %s: %s, want %s", test.name, got, test.want)
		}
	}
}

// A monitor that is killed while it swaps bundles comes up with the old one or the new
// one, and what it serves is all of that one.
func TestKilledDuringASwap(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.0.0/8", "de")
	s.document("/left/1.txt")
	s.document("/right/1.txt")
	s.pair(openText, closedText)
	left := s.sources()
	found := map[string]int{}
	for round := range 6 {
		s.pair(closedText, openText)
		right := s.sources()
		s.pair(openText, closedText)
		process, lines := s.startMonitorProcess(right, left)
		for range 1 + round%2 {
			if line, err := lines.ReadString('\n'); line != "swapped\n" {
				t.Fatalf("the monitor says %q, %v", line, err)
			}
		}
		// The next swap has begun; how far it comes is different in each round.
		time.Sleep(time.Duration(round*25) * time.Millisecond)
		s.must(process.Process.Kill())
		_ = process.Wait()
		s.open()
		s.startWorkers()
		u := s.login("alice", "127.0.1.1")
		seen := ""
		for _, name := range []string{"/left/1.txt", "/right/1.txt"} {
			seen += strings.Fields(u.must(fmt.Sprintf("read %d", s.id(name))))[0] + " "
		}
		policies := s.monitor.currentBundle().Policies()
		at := slices.IndexFunc(policies, func(p *manifest.Policy) bool { return p.Metadata.Name == "left" })
		if want := map[string]string{openText: "text error ",
			closedText: "error text "}[policies[at].Spec.Text]; seen != want {
			t.Errorf("round %d: sessions see %s, want %s", round, seen, want)
		}
		found[seen]++
		_, _ = u.say("quit")
		s.close()
	}
	t.Logf("in force after the kill: %v", found)
}
