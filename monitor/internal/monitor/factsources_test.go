// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/policy"
)

// withoutFriends is the bare manifest without its own friends: a test's source has them.
var withoutFriends = strings.Replace(pipelinetest.Bare, "    - {conduit: friends/alice, says: friend, tuples: [[bob]]}\n",
	"", 1)

func sourceText(spec string) string {
	return withoutFriends + "\n---\napiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: friends}\nspec: " + spec + "\n"
}

// factStore runs a real store on a unix socket; stop kills it, start runs it again, empty.
type factStore struct {
	t      *testing.T
	socket string
	server *exec.Cmd
	redis.Conn
}

func newFactStore(t *testing.T) *factStore {
	t.Helper()
	s := &factStore{t: t, socket: filepath.Join(t.TempDir(), "s")}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *factStore) start() {
	s.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Skip("redis-server is not installed (Debian package redis-server)")
	}
	s.server = exec.Command(program, "--port", "0", "--unixsocket", s.socket, "--dir", filepath.Dir(s.socket), "--save",
		"")
	if err := s.server.Start(); err != nil {
		s.t.Fatal(err)
	}
	waiting.Until(s.t, "redis-server answers", func() bool {
		s.Conn, err = redis.Dial("unix", s.socket)
		return err == nil
	})
}

func (s *factStore) stop() {
	_ = s.server.Process.Kill()
	_ = s.server.Wait()
}

func (s *factStore) do(line string) {
	s.t.Helper()
	words := strings.Fields(line)
	arguments := make([]any, len(words)-1)
	for i, word := range words[1:] {
		arguments[i] = word
	}
	if _, err := s.Do(words[0], arguments...); err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
}

func areFriends(m *Monitor, owner, friend string) bool {
	return m.state().Has(policy.Pattern{Conduit: "friends/" + owner, Relation: "friend",
		Arguments: []policy.Value{policy.String(friend)}})
}

// sourceStatus is the status of the one source, and that the monitor is ready.
func sourceStatus(t *testing.T, m *Monitor) api.FactSourceStatus {
	t.Helper()
	status, err := m.Status(context.Background())
	if err != nil || len(status.FactSources) != 1 || !status.Ready {
		t.Fatalf("%v, ready %v, sources %+v", err, status.Ready, status.FactSources)
	}
	return status.FactSources[0]
}

func metricOf(t *testing.T, m *Monitor, name string) float64 {
	t.Helper()
	families, err := m.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			one := family.GetMetric()[0]
			return one.GetCounter().GetValue() + one.GetGauge().GetValue()
		}
	}
	return -1
}

func startedBare(t *testing.T, options Options) *Monitor {
	t.Helper()
	m, err := Open(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Keys are polled, capability sets follow, and while the store does not answer the last
// facts stay.
func TestFactsFromKeys(t *testing.T) {
	store := newFactStore(t)
	store.do("SADD friends:alice bob")
	m, _ := bareMonitor(t, "unix:"+store.socket)
	text := sourceText(fmt.Sprintf("{redis: {socket: %s, intervalSeconds: 1, keys: [{pattern: \"friends:{user}\", conduit: \"friends/{user}\", says: friend}]}}", store.socket))
	applyBare(t, m, text)
	if status := sourceStatus(t, m); !areFriends(m, "alice", "bob") || status.Tuples != 1 || status.LastSuccess == nil {
		t.Errorf("after the apply: %+v", status)
	}
	analyzeBare(t, m)
	diary := classOf(t, m, "/diary/alice/1.txt")
	backend := superviseBare(t, m)
	bobReads := func() bool {
		set, inForce := backend.Supervisor().Set("worker(bob, de)")
		return inForce && slices.Contains(set.Classes, diary)
	}
	if !bobReads() {
		t.Error("bob may not read the diary of his friend")
	}
	store.do("SREM friends:alice bob")
	waiting.Until(t, "alice ends the friendship", func() bool { return !bobReads() })
	store.do("SADD friends:alice bob")
	waiting.Until(t, "they are friends again", bobReads)
	store.stop()
	waiting.Until(t, "the failure shows and is counted", func() bool {
		return sourceStatus(t, m).Message != "" && metricOf(t, m, "shai_fact_source_failures_total") >= 1
	})
	if !bobReads() {
		t.Error("the last facts are lost")
	}
	if age := metricOf(t, m, "shai_fact_source_age_seconds"); age <= 0 {
		t.Errorf("age %v", age)
	}
	if metricOf(t, m, "shai_fact_source_failing") != 1 {
		t.Error("the source does not fail")
	}
	applyBare(t, m, text+"---\napiVersion: shai.dev/v1alpha1\nkind: Principal\nmetadata: {name: dave}\nspec: {publicKey: \""+strings.Repeat("0", 64)+"\"}\n")
	if !areFriends(m, "alice", "bob") {
		t.Error("an apply while a known source does not answer has lost its facts")
	}
	store.start()
	waiting.Until(t, "an empty store is believed",
		func() bool { return !areFriends(m, "alice", "bob") && sourceStatus(t, m).Message == "" })
	if metricOf(t, m, "shai_fact_source_failing") != 0 {
		t.Error("the source still fails")
	}
	applyBare(t, m, pipelinetest.Bare)
	if status, _ := m.Status(context.Background()); len(status.FactSources) != 0 {
		t.Errorf("sources of a bundle without: %+v", status.FactSources)
	}
}

// A bundle whose facts are unknown is refused: its policies would allow what they allow
// in the absence of a fact. No part of it is in force.
func TestABundleWithUnknownFactsIsRefused(t *testing.T) {
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, `{"conduit": "friends/alice", "says": "friend", "tuples": [["carol"]]}`)
	}))
	defer server.Close()
	options := bareOptions(t, server.URL)
	m := startedBare(t, options)
	defer func() { _ = m.Close() }()
	applyBare(t, m, pipelinetest.Bare)
	before := m.state().Bundle()
	text := sourceText(fmt.Sprintf("{http: {url: %q, intervalSeconds: 1}}", server.URL))
	broken.Store(true)
	err := applyText(m, text)
	if err == nil || !strings.Contains(err.Error(),
		"FactSource friends: fetch facts from "+server.URL+": it answers 503") {
		t.Errorf("applied: %v", err)
	}
	if after := m.state().Bundle(); after.Hash != before.Hash || !areFriends(m, "alice", "bob") {
		t.Error("something of the refused bundle is in force")
	}
	broken.Store(false)
	applyBare(t, m, text)
	if !areFriends(m, "alice", "carol") || areFriends(m, "alice", "bob") {
		t.Error("the facts are not those of the source")
	}
	broken.Store(true)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = startedBare(t, options)
	waiting.Until(t, "the failure shows", func() bool { return sourceStatus(t, m).Message != "" })
	if status := sourceStatus(t, m); !areFriends(m, "alice", "carol") || status.Tuples != 1 ||
		status.LastSuccess != nil {
		t.Errorf("after a restart: %+v", status)
	}
}

// Entries of a stream are applied once, across restarts: a fact that was added and
// removed long ago never returns, not even for a moment.
func TestAStreamIsAppliedOnceAcrossRestarts(t *testing.T) {
	store := newFactStore(t)
	add := func(op, friend string) {
		store.do(`XADD facts * op ` + op + ` conduit friends/alice says friend tuple ["` + friend + `"]`)
	}
	add("add", "bob")
	options := bareOptions(t, "unix:"+store.socket)
	m := startedBare(t, options)
	defer func() { _ = m.Close() }()
	applyBare(t, m, sourceText(fmt.Sprintf("{redis: {socket: %s, stream: {key: facts}}}", store.socket)))
	if !areFriends(m, "alice", "bob") {
		t.Error("the first entry is not in force")
	}
	add("remove", "bob")
	add("add", "carol")
	waiting.Until(t, "carol is a friend", func() bool { return areFriends(m, "alice", "carol") })
	if areFriends(m, "alice", "bob") {
		t.Error("bob still is")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	add("replace", "dave")
	m = startedBare(t, options)
	waiting.Until(t, "what came meanwhile is in force", func() bool { return areFriends(m, "alice", "dave") })
	if areFriends(m, "alice", "carol") {
		t.Error("what was replaced still stands")
	}
	// carol and dave; bob came with the bundle. A record follows what it is about.
	waiting.Until(t, "two additions are recorded", func() bool { return len(additions(t, m)) == 2 })
	for fact, times := range additions(t, m) {
		if times != 1 {
			t.Errorf("%s was added %d times", fact, times)
		}
	}
}

// additions counts how often the audit log says that each fact was added.
func additions(t *testing.T, m *Monitor) map[string]int {
	t.Helper()
	added := map[string]int{}
	err := m.audit.Query(t.Context(), audit.Query{}, func(record audit.Record) error {
		if record.Kind == audit.Fact && record.Operation == "add" {
			added[strings.Join(record.Facts, " ")]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// The pipelines' own store lets only its administrator in.
func TestFactsFromTheConfinedStore(t *testing.T) {
	s := newStack(t)
	s.startKeyValue()
	s.open()
	request := s.sources()
	request.Sources = append(request.Sources,
		manifest.Source{Name: "source.yaml", Text: "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: more}\n" +
			"spec: {redis: {socket: $(REDIS_SOCKET), keys: [{pattern: \"friends:{user}\", conduit: \"friends/{user}\", says: friend}]}}\n"})
	if _, err := s.monitor.Apply(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	if status := sourceStatus(t, s.monitor); status.Message != "" || status.LastSuccess == nil {
		t.Errorf("%+v", status)
	}
	for i, source := range request.Sources {
		request.Sources[i].Text = strings.Replace(source.Text, "$(REDIS_SOCKET), keys", "$(ELSEWHERE), keys", 1)
	}
	if _, err := s.monitor.Apply(context.Background(), request); err == nil ||
		!strings.Contains(err.Error(), "$(ELSEWHERE) is not defined") {
		t.Errorf("a variable that is not defined: %v", err)
	}
}
