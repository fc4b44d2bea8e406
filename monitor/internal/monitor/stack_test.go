// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
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
	seen      uint64 // the last audit record that was looked at
	written   string // all records of a test that has failed
}

// newStack prepares a stack; nothing runs yet.
func newStack(t testing.TB) *stack {
	t.Helper()
	given := needPrograms(t)
	root := openDirectory(t)
	s := &stack{t: t, address: freeAddress(t), served: "probe", manifests: map[string]string{}}
	s.options = Options{
		Data: filepath.Join(root, "data"), State: filepath.Join(root, "state"), Library: given.library,
		Supervisor: given.supervisor, TaskIDs: taskUsers(root),
		// Of four workers: who connects again at once has a session more until the last one has ended.
		Sessions: SessionLimits{PerUser: 3},
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Define:   map[string]string{"PROBE": given.probe, "LISTEN": s.address, "KEYVALUE": filepath.Join(root, "kv")},
	}
	s.manifests["pipeline.yaml"] = withoutKeyValue(pipelineText(t))
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
		text, _, err := readTaskLog(file, 16<<10)
		s.t.Logf("%s, %v:\n%s", filepath.Base(file), err, text)
	}
}

// pipelineText is the pipeline's manifest. The run-time linker, which tasks need, has
// its place on each system.
func pipelineText(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), ", /lib64]", ", "+linkerFolder+"]")
}

// withoutKeyValue takes the store out of the pipeline, for tests that need none.
func withoutKeyValue(text string) string {
	head, rest, _ := strings.Cut(text, "    - name: profiles\n")
	_, rest, _ = strings.Cut(rest, "    - name: queries\n")
	rest, _, _ = strings.Cut(rest, "  keyValue:")
	return strings.NewReplacer("profiles, ", "", "histories, ", "").Replace(head) + "    - name: queries\n" + rest
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
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
	public := keyOf(name).Public().(ed25519.PublicKey)
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
	s.manifests["pipeline.yaml"] = pipelineText(s.t)
	directory, secrets := s.t.TempDir(), kvfilter.NewSecrets()
	configuration, err := kvfilter.Configuration(kvfilter.Server{Socket: s.options.Define["KEYVALUE"],
		Directory: directory}, secrets)
	s.must(err)
	file := filepath.Join(directory, "redis.conf")
	s.must(os.WriteFile(file, []byte(configuration), 0o600))
	encoded, err := json.Marshal(secrets)
	s.must(err)
	s.options.Secrets = filepath.Join(directory, "secrets.json")
	s.must(os.WriteFile(s.options.Secrets, encoded, 0o600))
	server := exec.Command(program, file)
	s.must(server.Start())
	s.t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	waiting.Until(s.t, "redis-server answers", func() bool {
		store, err := kvfilter.Open(context.Background(), s.options.Define["KEYVALUE"], secrets, "none")
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
// without a session is free: a session gives its slot back after it has ended.
func (s *stack) awaitIdle() {
	s.t.Helper()
	task := s.pipeline().tasks["worker"]
	waiting.Until(s.t, "workers wait for users", func() bool {
		idle := 3 - len(s.liveSessions())
		return task.idleCount.Load() == int64(idle) && len(s.freeSlots()) == idle
	})
}

func (s *stack) pipeline() *pipeline { return s.monitor.pipelines["probe"] }

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
		p.fence()
	}
}

// liveSessions are the sessions of the pipeline, by slot.
func (s *stack) liveSessions() []*session { return s.pipeline().live() }

// freeSlots are the numbers of slots that no session occupies.
func (s *stack) freeSlots() []int {
	slots := s.pipeline().slots
	if s.pipeline().tasks["worker"].supervises() {
		var free []int
		for number := range slots.channels {
			if s.sessionIn(number) == nil {
				free = append(free, number)
			}
		}
		return free
	}
	slots.mu.Lock()
	defer slots.mu.Unlock()
	return slices.Clone(slots.free)
}

// sessionIn is the live session of a slot.
func (s *stack) sessionIn(slot int) *session {
	for _, one := range s.liveSessions() {
		if one.slot.number == slot {
			return one
		}
	}
	return nil
}

// writeTransfer writes into a session's channel, as the search engine would.
func (s *stack) writeTransfer(to *session, query uint32, conduits ...uint32) {
	s.t.Helper()
	pairs := s.pipeline().conduits.pairs
	if to.mode == wire.ModeDynamic {
		pairs = s.pipeline().conduits.checked
	}
	_, err := pairs["results"][to.slot.number].writer.Write(transfer(query, conduits...))
	s.must(err)
}

// transfer is a record of a descriptor channel, as libshai writes it.
func transfer(query uint32, conduits ...uint32) []byte {
	record := binary.LittleEndian.AppendUint32(nil, query)
	record = binary.LittleEndian.AppendUint32(record, 0)
	for _, conduit := range conduits {
		record = binary.LittleEndian.AppendUint32(record, conduit)
	}
	return record
}

// interceptions are the counts by kind.
func (s *stack) interceptions() map[string]uint64 {
	s.t.Helper()
	s.settle()
	counts := map[string]uint64{}
	families, err := s.monitor.metrics.registry.Gather()
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
