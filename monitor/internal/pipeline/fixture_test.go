// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/policy"
)

// idleVariable names the environment variable that makes this test program wait for
// its end and do nothing else.
const idleVariable = "SHAI_TEST_IDLE"

func TestMain(m *testing.M) {
	if os.Getenv(idleVariable) != "" {
		// Waiting for nothing at all is an error of a Go program.
		killed := make(chan os.Signal, 1)
		signal.Notify(killed, syscall.SIGTERM)
		<-killed
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// idleProcess is a process that does nothing, not yet started.
func idleProcess(t testing.TB) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), idleVariable+"=1")
	return command
}

// fixture is a pipeline in force, with the services that a monitor gives it. None of its
// tasks runs.
type fixture struct {
	*Pipeline
	t      testing.TB
	name   string
	define map[string]string
	result *analysis.Result
	seen   uint64 // the last audit record that was looked at
}

// newFixture prepares the services for a pipeline; it is not in force yet.
func newFixture(t testing.TB, name string, limits SessionLimits) *fixture {
	t.Helper()
	pipelinetest.NeedSandbox(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Data: filepath.Join(root, "data"), State: filepath.Join(root, "state"), Sessions: limits}
	f := &fixture{t: t, name: name, define: pipelinetest.Define(t)}
	f.define["PROBE"], f.define["REDIS_SOCKET"] = "/nonexistent", "/nonexistent"
	f.must(os.MkdirAll(options.Data, 0o755))
	f.must(os.Mkdir(options.State, 0o700))
	s := &Services{
		Options: options, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Context: context.Background(),
		Backend: sandbox.New(sandbox.Options{}), Metrics: metrics.New(),
	}
	// Every denial is recorded by itself: a test must not depend on how many fall into one second.
	s.Audit, err = audit.Open(audit.Options{
		Directory: filepath.Join(options.State, "audit"), RefuseUnrecorded: true, RepeatWindow: 1,
	})
	f.must(err)
	s.Catalog, err = catalog.Open(filepath.Join(options.State, "catalog"))
	f.must(err)
	s.View, err = s.Catalog.AttachView(options.Data, filepath.Join(options.State, "view"))
	f.must(err)
	err = s.View.Watch(catalog.Watch{Written: func(string) bool { return false }, Withheld: func(catalog.Withheld) {},
		Failed: func(err error) { t.Errorf("watch documents: %v", err) }})
	if err != nil && !errors.Is(err, catalog.ErrUnwatched) {
		t.Fatal(err)
	}
	f.must(s.Open())
	f.Pipeline = &Pipeline{services: s}
	t.Cleanup(f.close)
	return f
}

// anotherLike returns another set with the same rights, which nobody holds.
func anotherLike(c *capabilitySet) *capabilitySet {
	return &capabilitySet{subject: c.subject, classes: c.classes, native: c.native, keyValue: c.keyValue,
		analyzed: c.analyzed, others: c.others, expires: c.expires}
}

func (f *fixture) close() {
	s := f.services
	if f.Pipeline.tasks != nil {
		f.Pipeline.Close()
	}
	if err := s.Close(); err != nil {
		f.t.Errorf("close: %v", err)
	}
	for _, one := range []io.Closer{s.View, s.Catalog, s.Audit} {
		if err := one.Close(); err != nil {
			f.t.Errorf("close: %v", err)
		}
	}
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// document makes a file whose content is its name.
func (f *fixture) document(name string) {
	f.t.Helper()
	path := filepath.Join(f.services.Options.Data, name)
	f.must(os.MkdirAll(filepath.Dir(path), 0o755))
	f.must(os.WriteFile(path, []byte(name), 0o644))
}

// apply puts the pipeline of a manifest in force, in the place of the one before.
func (f *fixture) apply(text string) {
	f.t.Helper()
	bundle, err := manifest.Parse(manifest.Source{Name: "fixture.yaml", Text: text}).Bundle()
	f.must(err)
	resolved, err := bundle.Resolve(f.name, f.define)
	f.must(err)
	s := f.services
	next, err := meaning.ForCatalog(bundle, s.Options.Data)
	f.must(err)
	_, err = s.Catalog.Apply(next)
	f.must(err)
	_, _, err = s.Catalog.RegisterFiles(f.t.Context(), s.Options.Data, nil)
	f.must(err)
	_, err = s.View.Verify(f.t.Context(), nil)
	f.must(err)
	s.RefreshRegions()
	if f.Pipeline.tasks != nil {
		f.Pipeline.Close()
	}
	f.Pipeline, err = New(s, Definition{Resolved: resolved, Bind: s.state().Bind})
	f.must(err)
}

// analyze puts the capability sets of all expected instances in force.
func (f *fixture) analyze() {
	f.t.Helper()
	f.must(f.Remember())
	var err error
	f.result, err = analysis.Run(f.t.Context(), f.plan, f.services.state(), analysis.Options{Now: time.Now()})
	f.must(err)
	sets, err := f.PrepareSets(f.t.Context(), f.result, nil, func(uint64, uint64) {})
	f.must(err)
	f.PutSets(sets)
	f.services.Binding.Lock()
	defer f.services.Binding.Unlock()
	f.Fence()
	f.RetireUsers()
}

// change removes facts and adds others, as a monitor does. It returns how many sessions it has
// ended.
func (f *fixture) change(remove, add []policy.Fact) (reset int) {
	f.t.Helper()
	f.services.Binding.Lock()
	defer f.services.Binding.Unlock()
	change, err := f.services.Catalog.AtOnce().ChangeFacts(remove, add)
	f.must(err)
	f.services.RefreshRegions()
	f.Follow(change)
	reset = f.EndOutdated(change, time.Now())
	if f.result != nil {
		next, affected, err := f.result.Update(f.t.Context(), change, analysis.Options{Now: time.Now()})
		f.must(err)
		f.result = next
		ending, err := f.Replace(f.Prepare(change.After, affected))
		f.must(err)
		ending.Wait()
		reset += len(ending)
	}
	f.Fence()
	f.RetireUsers()
	return reset
}

// fact is conduit says relation(tuple...).
func fact(conduit, relation string, tuple ...string) policy.Fact {
	values := make([]policy.Value, len(tuple))
	for i, text := range tuple {
		values[i] = policy.String(text)
	}
	return policy.Fact{Conduit: conduit, Relation: relation, Arguments: values}
}

func facts(list ...policy.Fact) []policy.Fact { return list }

// principal registers a key, and the region the principal is expected from.
func (f *fixture) principal(name, region string) {
	f.t.Helper()
	public := pipelinetest.Key(name).Public().(ed25519.PublicKey)
	f.change(nil, facts(fact("population", "key", name, hex.EncodeToString(public)), fact("population", "home", name, region)))
}

// id is a document's conduit number.
func (f *fixture) id(name string) uint32 {
	f.t.Helper()
	id, found := f.services.state().ID(name)
	if !found {
		f.t.Fatalf("no conduit is called %s", name)
	}
	return id
}

// records are the audit records since the last call.
func (f *fixture) records() []audit.Record {
	f.t.Helper()
	f.must(f.services.Audit.Flush(context.Background()))
	var list []audit.Record
	f.must(f.services.Audit.Query(context.Background(), audit.Query{}, func(r audit.Record) error {
		if r.Sequence > f.seen {
			list = append(list, r)
			f.seen = r.Sequence
		}
		return nil
	}))
	return list
}

// recorded reports whether a new record of the audit log gives a reason.
func (f *fixture) recorded(reason string) (found bool) {
	f.t.Helper()
	for _, r := range f.records() {
		found = found || strings.Contains(r.Reason, reason)
	}
	return found
}

// starts makes the task act as if its program had just been started.
func (t *Task) starts() *acting {
	a := t.newActing()
	a.tracked = a.track()
	t.acting.Store(a)
	return a
}

// bare is the pipeline of pipelinetest.Bare, not analysed.
func bare(t testing.TB) *fixture {
	t.Helper()
	f := newFixture(t, "bare", SessionLimits{})
	for _, name := range pipelinetest.BareDocuments {
		f.document(name)
	}
	f.apply(pipelinetest.Bare)
	return f
}

// probe is the pipeline of pipelinetest.Probe without its store, with documents and users in
// region de. It is not analysed.
func probe(t testing.TB, limits SessionLimits) *fixture {
	t.Helper()
	f := newFixture(t, "probe", limits)
	f.document("/corpus/private/alice/1.txt")
	f.document("/corpus/private/bob/1.txt")
	f.apply(pipelinetest.WithoutKeyValue(pipelinetest.Probe))
	f.principal("alice", "de")
	f.principal("bob", "de")
	f.change(nil, facts(fact(knownfacts.Regions, knownfacts.Prefix, "127.0.1.0/24", "de")))
	return f
}

// sessionOf are the values of parameters that a session has of itself.
func sessionOf(user, region string) map[string]string {
	return map[string]string{manifest.ParameterUser: user, manifest.ParameterRegion: region}
}
