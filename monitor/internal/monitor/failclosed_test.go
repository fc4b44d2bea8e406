// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/manifest"
)

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
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.start()
	u := s.login("alice", "127.0.1.1")
	original := s.manifests["pipeline.yaml"]
	version, hash, factsVersion, running := s.monitor.state().Bundle().Version, s.monitor.state().BundleHash(),
		s.monitor.state().FactsVersion(), s.pipeline()

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
		{name: "unknown field in a fact file", facts: "{\"conduit\":\"c\",\"says\":\"r\",\"tuple\":[[\"x\"]]}\n",
			want: "population.jsonl:1"},
		{name: "fact without a conduit", facts: "{\"says\":\"r\",\"tuples\":[[\"x\"]]}\n",
			want: "conduit and says must not be empty"},
		{name: "missing fact file", data: func() func() {
			s.must(os.Rename(facts, facts+".away"))
			return func() { s.must(os.Rename(facts+".away", facts)) }
		}, want: "make the file, or correct spec.file.path"},
		{name: "fact file that is a link out of the data directory", data: func() func() {
			elsewhere := filepath.Join(t.TempDir(), "facts.jsonl")
			s.must(os.WriteFile(elsewhere, nil, 0o600))
			s.must(os.Rename(facts, facts+".away"))
			s.must(os.Symlink(elsewhere, facts))
			return func() { s.must(os.Rename(facts+".away", facts)) }
		}, want: "path escapes"},
		{name: "pipe in place of a fact file", data: func() func() {
			s.must(os.Rename(facts, facts+".away"))
			s.must(syscall.Mkfifo(facts, 0o600))
			return func() { s.must(os.Rename(facts+".away", facts)) }
		}, want: "is no regular file"},
		{name: "missing data directory", data: func() func() {
			s.must(os.Rename(s.options.Data, s.options.Data+".away"))
			return func() { s.must(os.Rename(s.options.Data+".away", s.options.Data)) }
		}, want: "data directory"},
		{name: "unknown policy", manifest: strings.Replace(original, "policy: {name: public}", "policy: {name: publik}",
			1), want: "publik"},
		{name: "policy that does not parse", manifest: strings.Replace(original, "read       :- sKeyIs(owner).",
			"read       :- sKeyIs(owner.", 1), want: "private"},
		{name: "unknown variable", manifest: strings.Replace(original, "$(LISTEN)", "$(NOWHERE)", 1),
			want: "$(NOWHERE) is not defined"},
		{name: "more directories than numbers",
			manifest: strings.Replace(strings.Replace(original, "    - name: queries\n",
				"    - name: many\n      kind: file\n      directory: true\n      paths:\n"+directories+
					"    - name: queries\n", 1),
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
			request.Sources = append(request.Sources,
				manifest.Source{Name: "more.yaml",
					Text: "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: more}\nspec: {text: \"policy more { read :- true. }\"}\n"})
			_, err := s.monitor.Apply(t.Context(), request)
			undo()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("apply says %v, want %q", err, test.want)
			}
			state := s.monitor.state()
			if state.Bundle().Version != version || state.BundleHash() != hash || state.FactsVersion() != factsVersion {
				t.Errorf("bundle %d %s, facts %d; before %d %s, %d", state.Bundle().Version, state.BundleHash(),
					state.FactsVersion(), version, hash, factsVersion)
			}
			if _, there := state.PolicyText("more"); there || s.pipeline() != running {
				t.Error("half of it is in force")
			}
			another := s.login("alice", "127.0.1.1")
			for _, session := range []*user{u, another} {
				if got := session.must(fmt.Sprintf("read %d",
					s.id("/corpus/private/alice/1.txt"))); !strings.HasPrefix(got, "text ") {
					t.Errorf("alice's own document: %s", got)
				}
				if got := session.must(fmt.Sprintf("read %d",
					s.id("/corpus/private/bob/1.txt"))); !strings.HasPrefix(got, "error EACCES") {
					t.Errorf("bob's document: %s", got)
				}
			}
			another.connection.Close()
		})
	}
}

// TestStateIsClosedToOthers: who made the state directory beforehand may have left it open,
// and then everybody on the machine could read the view.
func TestStateIsClosedToOthers(t *testing.T) {
	for name, test := range map[string]struct {
		mode  fs.FileMode
		holds string
		want  fs.FileMode
	}{
		"new":                    {0, "", 0o700},
		"empty and open":         {0o755, "", 0o700},
		"a state directory":      {0o750, auditFolder, 0o700},
		"closed, of other files": {0o700, "other", 0o700},
		"open, of other files":   {0o777 | fs.ModeSticky, "other", 0o777 | fs.ModeSticky},
	} {
		t.Run(name, func(t *testing.T) {
			options := bareOptions(t)
			if test.mode != 0 {
				folder := filepath.Join(options.State, test.holds)
				if err := errors.Join(os.MkdirAll(folder, 0o700), os.Chmod(options.State, test.mode)); err != nil {
					t.Fatal(err)
				}
			}
			m, err := Open(context.Background(), options)
			if err == nil {
				defer m.Close()
			}
			if refused := test.want != 0o700; (err != nil) != refused {
				t.Errorf("open: %v", err)
			}
			info, err := os.Stat(options.State)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode() &^ fs.ModeDir; got != test.want {
				t.Errorf("mode %v, want %v", got, test.want)
			}
		})
	}
}
