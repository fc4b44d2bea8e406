// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
)

// decides asks about reading a document in a session of alice's.
func (s *stack) decides(name string, mode wire.Mode) bool {
	s.t.Helper()
	p := s.pipeline()
	holds, err := p.capabilities(p.tasks["worker"], parametersOf("alice", "de"))
	s.must(err)
	conduit, found := s.monitor.conduitNamed(name)
	if !found {
		s.t.Fatalf("no conduit %s", name)
	}
	return p.decide(holds.subject, opRead, conduit, mode).Allowed
}

// What would be allowed and cannot be recorded is refused; a denial stays one. The
// monitor's own log is on a file system that fills up.
func TestAuditLogIsFull(t *testing.T) {
	s := newStack(t)
	s.document("/corpus/private/alice/1.txt")
	s.document("/corpus/private/bob/1.txt")
	s.principal("alice", "de")
	s.fact(regionsConduit, prefixRelation, "127.0.1.0/24", "de")
	s.must(os.MkdirAll(s.auditDirectory(), 0o700))
	if err := unix.Mount("tmpfs", s.auditDirectory(), "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.auditDirectory(), unix.MNT_DETACH) })
	m, err := Open(t.Context(), s.options)
	s.must(err)
	t.Cleanup(func() { _ = m.Close() }) // says that records are lost
	s.monitor = m
	s.apply()
	own, foreign := "/corpus/private/alice/1.txt", "/corpus/private/bob/1.txt"
	if !s.decides(own, wire.ModeShai) || !s.decides(foreign, wire.ModeAudit) || s.decides(foreign, wire.ModeShai) {
		t.Fatal("decisions are wrong while there is space")
	}
	if bound := s.wireSession(t).authenticate("alice"); bound.Status != 0 {
		t.Fatalf("alice is refused while there is space: %s", bound.Reason)
	}

	filler := filepath.Join(s.auditDirectory(), "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	waitUntil(t, "the log fails", func() bool {
		s.decides(own, wire.ModeShai)
		_ = m.audit.Flush(context.Background())
		return m.audit.Failing() != nil
	})
	if s.decides(own, wire.ModeShai) || s.decides(foreign, wire.ModeAudit) || s.decides(foreign, wire.ModeShai) {
		t.Error("something is allowed although it cannot be recorded")
	}
	b := s.wireSession(t)
	if bound := b.authenticate("alice"); bound.Status == 0 || !strings.Contains(bound.Reason, "cannot be recorded") {
		t.Errorf("a session is bound although that cannot be recorded: %+v", bound)
	}
	if b.bound() != nil {
		t.Error("the session has its capabilities all the same")
	}
	if err := m.Ready(t.Context()); err == nil {
		t.Error("the monitor says that it is ready")
	}

	s.must(os.Remove(filler))
	waitUntil(t, "the log is written again", func() bool { return m.audit.Flush(context.Background()) == nil })
	if !s.decides(own, wire.ModeShai) {
		t.Error("refused although there is space again")
	}
	if checked, err := audit.Verify(t.Context(), s.auditDirectory()); err != nil || checked.Fault != "" {
		t.Errorf("the chain: %s, %v", checked.Fault, err)
	}
}

// An apply that fails changes nothing: the old bundle stays in force, for sessions
// that live and for those that begin.
func TestApplyThatFails(t *testing.T) {
	s := newStack(t)
	s.document("/corpus/private/alice/1.txt")
	s.document("/corpus/private/bob/1.txt")
	s.document("/facts/population.jsonl")
	facts := filepath.Join(s.options.Data, "facts/population.jsonl")
	s.must(os.WriteFile(facts, nil, 0o600))
	s.manifests["file.yaml"] = "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: file}\nspec: {file: {path: /facts/population.jsonl}}\n"
	s.principal("alice", "de")
	s.fact(regionsConduit, prefixRelation, "127.0.1.0/24", "de")
	s.start()
	u := s.login("alice", "127.0.1.1")
	original := s.manifests["pipeline.yaml"]
	version, hash, factsVersion, running := s.monitor.state().Bundle().Version, s.monitor.state().BundleHash(), s.monitor.state().FactsVersion(), s.pipeline()

	directories := ""
	for i := range 17 {
		directories += "        - {path: \"/many/" + string(rune('a'+i)) + "/**\", policy: {name: index}}\n"
	}
	for _, test := range []struct {
		name, facts, manifest string
		data                  func() (undo func())
		want                  string
	}{
		{name: "bad line in a fact file", facts: "{\"conduit\":\"friends/bob\",\"says\":\"friend\",\"tuples\":[[\"alice\"]]}\nnonsense\n", want: "population.jsonl:2"},
		{name: "unknown field in a fact file", facts: "{\"conduit\":\"c\",\"says\":\"r\",\"tuple\":[[\"x\"]]}\n", want: "population.jsonl:1"},
		{name: "fact without a conduit", facts: "{\"says\":\"r\",\"tuples\":[[\"x\"]]}\n", want: "conduit and says must not be empty"},
		{name: "missing fact file", data: func() func() {
			s.must(os.Rename(facts, facts+".away"))
			return func() { s.must(os.Rename(facts+".away", facts)) }
		}, want: "make the file, or correct spec.file.path"},
		{name: "missing data directory", data: func() func() {
			s.must(os.Rename(s.options.Data, s.options.Data+".away"))
			return func() { s.must(os.Rename(s.options.Data+".away", s.options.Data)) }
		}, want: "data directory"},
		{name: "unknown policy", manifest: strings.Replace(original, "policy: {name: public}", "policy: {name: publik}", 1), want: "publik"},
		{name: "policy that does not parse", manifest: strings.Replace(original, "read       :- sKeyIs(owner).", "read       :- sKeyIs(owner.", 1), want: "private"},
		{name: "unknown variable", manifest: strings.Replace(original, "$(LISTEN)", "$(NOWHERE)", 1), want: "$(NOWHERE) is not defined"},
		{name: "more directories than numbers", manifest: strings.Replace(strings.Replace(original, "    - name: queries\n",
			"    - name: many\n      kind: file\n      directory: true\n      paths:\n"+directories+"    - name: queries\n", 1),
			"reads: [queries]", "reads: [queries, many]", 1), want: "more than 16 directories"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.must(os.WriteFile(facts, []byte(test.facts), 0o600))
			s.manifests["pipeline.yaml"] = original
			if test.manifest != "" {
				s.manifests["pipeline.yaml"] = test.manifest
			}
			undo := func() {}
			if test.data != nil {
				undo = test.data()
			}
			request := s.sources()
			// Something that would be in force if half of it were.
			request.Sources = append(request.Sources, manifest.Source{Name: "more.yaml", Text: "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: more}\nspec: {text: \"policy more { read :- true. }\"}\n"})
			_, err := s.monitor.Apply(t.Context(), request)
			undo()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("apply says %v, want %q", err, test.want)
			}
			state := s.monitor.state()
			if state.Bundle().Version != version || state.BundleHash() != hash || state.FactsVersion() != factsVersion {
				t.Errorf("bundle %d %s, facts %d; before %d %s, %d", state.Bundle().Version, state.BundleHash(), state.FactsVersion(), version, hash, factsVersion)
			}
			if _, there := state.PolicyText("more"); there || s.pipeline() != running {
				t.Error("half of it is in force")
			}
			another := s.login("alice", "127.0.1.1")
			for _, session := range []*user{u, another} {
				if got := session.must(fmt.Sprintf("read %d", s.id("/corpus/private/alice/1.txt"))); !strings.HasPrefix(got, "text ") {
					t.Errorf("alice's own document: %s", got)
				}
				if got := session.must(fmt.Sprintf("read %d", s.id("/corpus/private/bob/1.txt"))); !strings.HasPrefix(got, "error EACCES") {
					t.Errorf("bob's document: %s", got)
				}
			}
			another.connection.Close()
		})
	}
}
