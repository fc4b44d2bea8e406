// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/waiting"
)

// Sys-E's front end with its fast engine: all of a search runs under the monitor.

// useEngine puts the fast engine, which may be broken, in the place of the search engine that
// the test plays otherwise. The front end is in its place already.
func (s *stack) useEngine(fault string) {
	s.t.Helper()
	text := s.manifests["pipeline.yaml"]
	for old, replacement := range map[string]string{
		"  command: [$(PROBE)/probe_worker, register, search, worker, indexer]\n  runtimeName: probe\n": `  command: ` +
			`[$(FRONTEND)/syse-engine, --documents, /shai/view, --queries, /shai/pipe/queries, ` +
			`--results, /shai/channel/results, --slots, "3", --fault, ` + fault + "]\n  runtimeName: frontend\n",
		"  run: Once\n  taint: {name: index}\n  reads: [queries]": "  run: Always\n  taint: {name: index}\n" +
			"  reads: [queries, documents]",
	} {
		if !strings.Contains(text, old) {
			s.t.Fatalf("the pipeline has no %q any more", old)
		}
		text = strings.Replace(text, old, replacement, 1)
	}
	s.manifests["pipeline.yaml"] = text
}

// owned makes a document of a user, as Sys-E writes it, or of nobody.
func (s *stack) owned(name, owner, visibility string) {
	s.t.Helper()
	path := filepath.Join(s.options.Data, name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	text := fmt.Sprintf("title: %s\nowner: %s\nvisibility: %s\n\nA blue moon.\n", name, owner, visibility)
	s.must(os.WriteFile(path, []byte(text), 0o644))
}

// useData puts documents and users into Sys-E with its engine.
func (s *stack) useData(fault string) {
	s.t.Helper()
	s.startKeyValue()
	s.useFrontEnd()
	s.useEngine(fault)
	s.must(os.RemoveAll(filepath.Join(s.options.Data, "corpus")))
	s.owned(everybodys, "-", "public")
	s.owned(alices, "alice", "private")
	s.owned(bobs, "bob", "private")
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
}

// searched has alice search.
func (s *stack) searched(mode string) result {
	s.t.Helper()
	_, err := s.monitor.StartTask(s.t.Context(), "probe", "search")
	s.must(err)
	alice := s.browse("127.0.1.1")
	if status, session := alice.login("alice", "alice"); status != 200 || session.Mode != mode {
		s.t.Fatalf("alice: %d %+v", status, session)
	}
	s.records()
	var found result
	if status := alice.ask("GET", search, nil, &found); status != 200 {
		s.t.Fatalf("search: %d %+v", status, found)
	}
	return found
}

func TestFastEngine(t *testing.T) {
	withheld := map[string]int{"none": 0, "ignore-attributes": 1}
	for _, mode := range []string{"shai", "dynamic"} {
		for _, fault := range slices.Sorted(maps.Keys(withheld)) {
			t.Run(mode+"/"+fault, func(t *testing.T) {
				s := newStack(t)
				s.useData(fault)
				s.start()
				_, err := s.monitor.SetMode(t.Context(), "probe", mode)
				s.must(err)
				found := s.searched(mode)
				if !found.has(alices, everybodys) || found.Withheld != withheld[fault] {
					t.Errorf("alice's results: %+v", found)
				}
				denied := func(r audit.Record) bool {
					return r.Kind == audit.Denial && r.Conduit == bobs && r.Principal == "alice"
				}
				if recorded := slices.ContainsFunc(s.records(), denied); recorded != (withheld[fault] > 0) {
					t.Errorf("a refusal of bob's document is recorded: %v", recorded)
				}
			})
		}
	}
}

// enforceNothing has Sys-E run in mode baseline, in which its front end verifies logins by itself
// and has a store without users.
func (s *stack) enforceNothing() {
	s.t.Helper()
	keys, socket := s.keysFile(), s.plainStore()
	text := strings.Replace(s.manifests["pipeline.yaml"], "mode: shai", "mode: baseline", 1)
	s.manifests["pipeline.yaml"] = strings.Replace(text, "syse-frontend, ",
		fmt.Sprintf("syse-frontend, --keys, %s, --keyvalue, %s, ", keys, socket), 1)
}

// keysFile has the facts so far, with the principals' keys.
func (s *stack) keysFile() string {
	s.t.Helper()
	keys := filepath.Join(s.t.TempDir(), "keys.jsonl")
	s.must(os.WriteFile(keys, []byte(strings.Join(s.facts, "\n")+"\n"), 0o644))
	return keys
}

// plainStore is the socket of a key-value store that lets everybody do everything.
func (s *stack) plainStore() string {
	s.t.Helper()
	directory := s.t.TempDir()
	socket := filepath.Join(directory, "kv")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--unixsocketperm", "777",
		"--save", "", "--dir", directory)
	waiting.Server(s.t, server, func() bool {
		connection, err := net.Dial("unix", socket)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	return socket
}

// In mode baseline, what a broken engine leaks reaches the user.
func TestFastEngineInModeBaseline(t *testing.T) {
	found := map[string][]string{"none": {alices, everybodys}, "ignore-attributes": {alices, bobs, everybodys}}
	for _, fault := range slices.Sorted(maps.Keys(found)) {
		t.Run(fault, func(t *testing.T) {
			s := newStack(t)
			s.useData(fault)
			s.enforceNothing()
			s.open()
			s.apply()
			_, err := s.monitor.StartTask(t.Context(), "probe", "worker")
			s.must(err)
			if got := s.searched("baseline"); !got.has(found[fault]...) || got.Withheld != 0 {
				t.Errorf("alice's results: %+v", got)
			}
		})
	}
}
