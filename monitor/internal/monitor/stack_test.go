// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/kvfilter"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/policy"
)

// stack is a monitor with everything around it that it needs: a data directory,
// manifests, and, where asked for, a key-value store.
type stack struct {
	t         testing.TB
	options   Options
	address   string            // of the front end
	manifests map[string]string // file name -> text; what apply sends
	facts     []string          // inline statements of the manifest
	monitor   *Monitor
	seen      uint64 // the last audit record that was looked at
}

// newStack prepares a stack; nothing runs yet.
func newStack(t testing.TB) *stack {
	t.Helper()
	given := needPrograms(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{t: t, address: freeAddress(t), manifests: map[string]string{}}
	s.options = Options{
		Data: filepath.Join(root, "data"), State: filepath.Join(root, "state"), Library: given.library,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Define: map[string]string{"PROBE": given.probe, "LISTEN": s.address, "KEYVALUE": filepath.Join(root, "kv")},
	}
	text, err := os.ReadFile("testdata/pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.manifests["pipeline.yaml"] = withoutKeyValue(string(text))
	s.document("/corpus/public/1.txt")
	return s
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
	s.must(os.MkdirAll(filepath.Dir(path), 0o700))
	s.must(os.WriteFile(path, []byte(name+"\nthe text\n"), 0o600))
}

// keyOf is a principal's key pair, the same in every run.
func keyOf(principal string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("test key of " + principal))
	return ed25519.NewKeyFromSeed(seed[:])
}

// signature is a principal's claim to a connection, which has this nonce, signed with
// somebody's key; both are in hexadecimal.
func signature(principal, signer, nonce string) string {
	return hex.EncodeToString(ed25519.Sign(keyOf(signer), []byte("shai-session-v1\n"+principal+"\n"+nonce)))
}

func (s *stack) fact(conduit, says string, tuple ...string) {
	text, err := json.Marshal(map[string]any{"conduit": conduit, "says": says, "tuples": [][]string{tuple}})
	s.must(err)
	s.facts = append(s.facts, string(text))
}

// principal registers a key, and the region the principal is expected from.
func (s *stack) principal(name, region string) {
	public := keyOf(name).Public().(ed25519.PublicKey)
	s.fact(populationFacts, keyRelation, name, hex.EncodeToString(public))
	if region != "" {
		s.fact(populationFacts, "home", name, region)
	}
}

// startKeyValue starts a store and puts it into the pipeline.
func (s *stack) startKeyValue() {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		s.t.Skip("redis-server is not installed (Debian package redis-server)")
	}
	text, err := os.ReadFile("testdata/pipeline.yaml")
	s.must(err)
	s.manifests["pipeline.yaml"] = string(text)
	directory, secrets := s.t.TempDir(), kvfilter.NewSecrets()
	configuration, err := kvfilter.Configuration(kvfilter.Server{Socket: s.options.Define["KEYVALUE"], Directory: directory}, secrets)
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
	waitUntil(s.t, "redis-server answers", func() bool {
		store, err := kvfilter.Open(context.Background(), s.options.Define["KEYVALUE"], secrets)
		if err == nil {
			_ = store.Close()
		}
		return err == nil
	})
}

// waitUntil waits for what should happen at once.
func waitUntil(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !happened(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// open opens the monitor. Every denial is recorded by itself: a test must not
// depend on how many fall into one second.
func (s *stack) open() {
	s.t.Helper()
	m, err := Open(context.Background(), s.options)
	s.must(err)
	s.must(m.audit.Close())
	m.audit, err = audit.Open(audit.Options{Directory: s.auditDirectory(), RefuseUnrecorded: true, RepeatWindow: -1})
	s.must(err)
	s.monitor = m
	s.t.Cleanup(s.close)
}

func (s *stack) auditDirectory() string { return filepath.Join(s.options.State, "audit") }

func (s *stack) close() {
	if s.monitor == nil {
		return
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

func (s *stack) analyse() api.Analysis {
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

func (s *stack) awaitIdle() {
	s.t.Helper()
	task := s.pipeline().tasks["worker"]
	waitUntil(s.t, "workers wait for users", func() bool {
		return task.idleCount.Load() == int64(3-len(s.pipeline().liveSessions()))
	})
}

func (s *stack) pipeline() *pipeline { return s.monitor.pipelines["probe"] }

// start does all of it: open, apply, analyse, start.
func (s *stack) start() {
	s.t.Helper()
	s.open()
	s.apply()
	s.analyse()
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
	s.must(s.monitor.audit.Flush(s.t.Context()))
	var list []audit.Record
	s.must(audit.Search(s.t.Context(), s.auditDirectory(), audit.Query{}, func(r audit.Record) error {
		if r.Sequence > s.seen {
			list = append(list, r)
			s.seen = r.Sequence
		}
		return nil
	}))
	return list
}

// interceptions are the counts by kind.
func (s *stack) interceptions() map[string]uint64 {
	s.t.Helper()
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

// user is one client of the front end.
type user struct {
	stack      *stack
	connection *net.TCPConn
	answers    *lineReader
	nonce      string
	process    int // that serves the user, as a transcript's session knows it
	slot       int
}

// connect connects from an address of the loopback network.
func (s *stack) connect(from string) (*user, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	connection, err := dialer.Dial("tcp", s.address)
	if err != nil {
		return nil, err
	}
	u := &user{stack: s, connection: connection.(*net.TCPConn), answers: &lineReader{from: connection}}
	s.t.Cleanup(func() { connection.Close() })
	answer, err := u.say("nonce")
	u.nonce = strings.TrimPrefix(answer, "nonce ")
	return u, err
}

// say sends one command and returns its answer; io.EOF when the session has ended.
func (u *user) say(command string) (string, error) {
	_ = u.connection.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintln(u.connection, command); err != nil {
		return "", io.EOF
	}
	return u.answers.line()
}

// must says something in a session that is expected to live.
func (u *user) must(command string) string {
	u.stack.t.Helper()
	answer, err := u.say(command)
	if err != nil {
		u.stack.t.Fatalf("%s: %v", command, err)
	}
	return answer
}

// authenticate signs this connection's nonce as a principal with somebody's key.
func (u *user) authenticate(principal, signer string) (string, error) {
	return u.say("authenticate " + principal + " " + signature(principal, signer, u.nonce))
}

// login connects and authenticates, which is expected to succeed.
func (s *stack) login(principal, from string) *user {
	s.t.Helper()
	u, err := s.connect(from)
	s.must(err)
	answer, err := u.authenticate(principal, principal)
	s.must(err)
	if !strings.HasPrefix(answer, "bound ") {
		s.t.Fatalf("%s from %s: %s", principal, from, answer)
	}
	return u
}

// lineReader reads one line at a time and nothing beyond.
type lineReader struct {
	from   net.Conn
	buffer []byte
}

func (r *lineReader) line() (string, error) {
	for {
		if text, rest, found := strings.Cut(string(r.buffer), "\n"); found {
			r.buffer = []byte(rest)
			return text, nil
		}
		var part [1024]byte
		n, err := r.from.Read(part[:])
		r.buffer = append(r.buffer, part[:n]...)
		if n > 0 {
			continue
		}
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			return "", fmt.Errorf("no answer within %v", patience)
		}
		return "", io.EOF // a reset connection has ended, too
	}
}
