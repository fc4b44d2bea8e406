// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/tasklog"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/policy"
)

// stack is a monitor with everything around it that it needs: a data directory,
// manifests, and, where asked for, a key-value store.
type stack struct {
	t         testing.TB
	options   Options
	address   string            // of the front end
	served    string            // the pipeline that users mean
	manifests map[string]string // file name -> text; what apply sends
	facts     []string          // inline statements of the manifest
	monitor   *Monitor
	observer  *observer                             // of the open monitor
	seen      uint64                                // the last audit record that was looked at
	written   string                                // all records of a test that has failed
	raising   func(sandbox.Raising) sandbox.Raising // of the observer
}

// newStack prepares a stack; nothing runs yet.
func newStack(t testing.TB) *stack {
	t.Helper()
	given := needPrograms(t)
	root := openDirectory(t)
	define := pipelinetest.Define(t)
	define["PROBE"], define["REDIS_SOCKET"] = given.probe, filepath.Join(root, "kv")
	s := &stack{t: t, address: define["LISTEN"], served: "probe", manifests: map[string]string{}}
	s.options = Options{
		Data: filepath.Join(root, "data"), State: filepath.Join(root, "state"), Library: given.library,
		Supervisor: given.supervisor, TaskIDs: taskUsers(root),
		NoIngest: true, // a test says when its documents come
		// Of four workers: who connects again at once has a session more until the last one has ended.
		Sessions: pipeline.SessionLimits{PerUser: 3},
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Define:   define, Runtimes: pipelinetest.Runtimes(given.probe),
	}
	s.manifests["pipeline.yaml"] = pipelinetest.WithoutKeyValue(pipelinetest.Probe)
	s.document("/corpus/public/1.txt")
	t.Cleanup(s.showOutput)
	return s
}

// openDirectory is a directory that every user may search, tasks' among them.
func openDirectory(t testing.TB) string {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for path := directory; path != filepath.Clean(os.TempDir()) && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// showOutput shows, if the test has failed, what its tasks have printed and what was
// recorded.
func (s *stack) showOutput() {
	if !s.t.Failed() {
		return
	}
	s.t.Logf("recorded:\n%s", s.written)
	logs, err := filepath.Glob(filepath.Join(s.options.State, "logs/*/*/*.log"))
	s.must(err)
	for _, file := range logs {
		page, err := tasklog.Read(file, "", 16<<10)
		s.t.Logf("%s, %v:\n%s", filepath.Base(file), err, page.Text)
	}
}

func (s *stack) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// document makes a file whose first line is its name.
func (s *stack) document(name string) {
	s.t.Helper()
	path := filepath.Join(s.options.Data, name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte(name+"\nthe text\n"), 0o644))
}

func (s *stack) fact(conduit, says string, tuple ...string) {
	text, err := json.Marshal(map[string]any{"conduit": conduit, "says": says, "tuples": [][]string{tuple}})
	s.must(err)
	s.facts = append(s.facts, string(text))
}

// principal registers a key, and the region the principal is expected from.
func (s *stack) principal(name, region string) {
	public := pipelinetest.Key(name).Public().(ed25519.PublicKey)
	s.fact("population", "key", name, hex.EncodeToString(public))
	if region != "" {
		s.fact("population", "home", name, region)
	}
}

// startKeyValue starts a store and puts it into the pipeline.
func (s *stack) startKeyValue() {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Skip("redis-server is not installed (Debian package redis-server)")
	}
	s.manifests["pipeline.yaml"] = pipelinetest.Probe
	directory, secrets := s.t.TempDir(), kvfilter.NewSecrets()
	configuration, err := kvfilter.Configuration(kvfilter.Server{Socket: s.options.Define["REDIS_SOCKET"],
		Directory: directory}, secrets)
	s.must(err)
	file := filepath.Join(directory, "redis.conf")
	s.must(os.WriteFile(file, []byte(configuration), 0o600))
	encoded, err := json.Marshal(secrets)
	s.must(err)
	s.options.Secrets = filepath.Join(directory, "secrets.json")
	s.must(os.WriteFile(s.options.Secrets, encoded, 0o600))
	waiting.Server(s.t, exec.Command(program, file), func() bool {
		store, err := kvfilter.Open(context.Background(), s.options.Define["REDIS_SOCKET"], secrets, "none")
		if err == nil {
			_ = store.Close()
		}
		return err == nil
	})
}

// open opens the monitor. Every denial is recorded by itself: a test must not
// depend on how many fall into one second.
func (s *stack) open() {
	s.t.Helper()
	m, err := Open(context.Background(), s.options)
	s.must(err)
	s.must(m.audit.Close())
	m.audit, err = audit.Open(audit.Options{Directory: s.auditDirectory(), RefuseUnrecorded: true, RepeatWindow: 1})
	s.must(err)
	m.services.Audit = m.audit
	s.observer = &observer{Backend: m.services.Backend, raising: s.raising}
	m.services.Backend = s.observer
	s.monitor = m
	s.t.Cleanup(s.close)
}

func (s *stack) auditDirectory() string { return filepath.Join(s.options.State, "audit") }

func (s *stack) close() {
	if s.monitor == nil {
		return
	}
	if s.t.Failed() {
		s.seen = 0
		for _, r := range s.records() {
			s.written += fmt.Sprintf("%+v\n", r.Event)
		}
	}
	if err := s.monitor.Close(); err != nil {
		s.t.Errorf("close: %v", err)
	}
	s.monitor = nil
}

func (s *stack) sources() api.ApplyRequest {
	facts := "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: facts}\nspec:\n  inline:\n"
	for _, fact := range s.facts {
		facts += "    - " + fact + "\n"
	}
	if len(s.facts) == 0 {
		facts = ""
	}
	request := api.ApplyRequest{Sources: []manifest.Source{{Name: "facts.yaml", Text: facts}}}
	for name, text := range s.manifests {
		request.Sources = append(request.Sources, manifest.Source{Name: name, Text: text})
	}
	return request
}

func (s *stack) apply() {
	s.t.Helper()
	_, err := s.monitor.Apply(s.t.Context(), s.sources())
	s.must(err)
}

func (s *stack) analyze() api.Analysis {
	s.t.Helper()
	report, err := s.monitor.Analyze(s.t.Context(), api.AnalyzeRequest{}, func(api.Progress) {})
	s.must(err)
	return report
}

// startWorkers starts the front end and waits until all its workers are idle.
func (s *stack) startWorkers() {
	s.t.Helper()
	_, err := s.monitor.StartTask(s.t.Context(), "probe", "worker")
	s.must(err)
	s.awaitIdle()
}

// awaitIdle waits until every worker without a session waits for a user, and every slot
// without a session is free.
func (s *stack) awaitIdle() {
	s.t.Helper()
	waiting.Until(s.t, "workers wait for users", func() bool {
		idle := 3 - len(s.liveSessions())
		return s.observer.idle.Load() == int64(idle) && len(s.freeSlots()) == idle
	})
}

func (s *stack) pipeline() *pipeline.Pipeline { return s.monitor.pipelines["probe"] }

// start does all of it: open, apply, analyse, start.
func (s *stack) start() {
	s.t.Helper()
	s.open()
	s.apply()
	s.analyze()
	s.startWorkers()
}

func (s *stack) changeFacts(change api.FactChange) api.FactResult {
	s.t.Helper()
	result, err := s.monitor.ChangeFacts(s.t.Context(), change)
	s.must(err)
	return result
}

// apiFact is conduit says says(tuple...).
func apiFact(conduit, says string, tuple ...string) api.Fact {
	values := make([]policy.Value, len(tuple))
	for i, text := range tuple {
		values[i] = policy.String(text)
	}
	return api.Fact{Conduit: conduit, Says: says, Tuple: policy.NewTuple(values...)}
}

// id is a document's conduit number.
func (s *stack) id(name string) uint32 {
	s.t.Helper()
	id, found := s.monitor.state().ID(name)
	if !found {
		s.t.Fatalf("no conduit is called %s", name)
	}
	return id
}

// records are the audit records since the last call.
func (s *stack) records() []audit.Record {
	s.t.Helper()
	s.settle()
	s.must(s.monitor.audit.Flush(context.Background()))
	var list []audit.Record
	s.must(s.monitor.audit.Query(context.Background(), audit.Query{}, func(r audit.Record) error {
		if r.Sequence > s.seen {
			list = append(list, r)
			s.seen = r.Sequence
		}
		return nil
	}))
	return list
}

// settle returns when supervisors have reported everything that has happened.
func (s *stack) settle() {
	for _, p := range s.monitor.pipelines {
		p.Fence()
	}
}

// liveSessions are the sessions of the pipeline, by slot.
func (s *stack) liveSessions() []pipeline.SessionStatus {
	s.settle()
	return s.pipeline().Status().Sessions
}

// freeSlots are the numbers of slots that no session occupies.
func (s *stack) freeSlots() (free []int) {
	for number := range 3 {
		if s.sessionIn(number) == nil {
			free = append(free, number)
		}
	}
	return free
}

// sessionIn is the live session of a slot, nil if the slot is free.
func (s *stack) sessionIn(slot int) *pipeline.SessionStatus {
	for _, one := range s.liveSessions() {
		if one.Slot == slot {
			return &one
		}
	}
	return nil
}

// interceptions are the counts by kind.
func (s *stack) interceptions() map[string]uint64 {
	s.t.Helper()
	s.settle()
	counts := map[string]uint64{}
	families, err := s.monitor.metrics.Gather()
	s.must(err)
	for _, family := range families {
		if family.GetName() != "shai_interceptions_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "kind" {
					counts[label.GetValue()] += uint64(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return counts
}
