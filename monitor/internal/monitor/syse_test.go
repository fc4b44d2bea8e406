// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// Sys-E's own manifests with its own front end. Its search engine, which is a Java program, does
// not run.

const sysEManifests = "../../../crds/examples/syse"

// sysE is Sys-E in a mode. Tasks that serve users have an address each.
type sysE struct {
	*stack
	addresses map[string]string
	plain     string // in mode baseline the socket of the store that the front end uses
}

// enforces reports whether its mode is not baseline.
func (s *sysE) enforces() bool { return s.plain == "" }

// region is where alice is: only a monitor knows it.
func (s *sysE) region() string {
	if s.enforces() {
		return "de"
	}
	return ""
}

// newSysE prepares it with users alice at home in de and erin and frank of the support, of whom erin
// is in us. Nothing runs yet. define has values of variables.
func newSysE(t *testing.T, mode string, define map[string]string) *sysE {
	t.Helper()
	s := &sysE{stack: newStack(t), addresses: map[string]string{}}
	s.startKeyValue()
	folder, err := provideFrontEnd()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("there is no front end here: %v", err)
	}
	s.must(err)
	s.served = "syse"
	s.manifests = map[string]string{}
	for _, name := range []string{"facts.yaml", "policies.yaml", "tasks.yaml", "pipeline.yaml"} {
		text, err := os.ReadFile(filepath.Join(sysEManifests, name))
		s.must(err)
		s.manifests["syse-"+name] = string(text)
	}
	s.options.Define["SYSE"], s.options.Define["JAVA"], s.options.Define["KEYS"] = folder, "/bin/true", ""
	for name, value := range define {
		s.options.Define[name] = value
	}
	s.options.Runtimes["java"] = s.options.Runtimes["system"]
	s.options.Runtimes["front-end"] = append([]string{folder}, s.options.Runtimes["probe"]...)
	s.change("pipeline", "mode: shai", "mode: "+mode)
	for task, port := range map[string]string{"worker": ":8640", "interests": ":8641", "support": ":8642"} {
		s.addresses[task] = pipelinetest.FreeAddress(t)
		s.change("pipeline", "$(MEMBER_ADDRESS)"+port, s.addresses[task])
	}
	s.principal("alice", "de")
	s.principal("erin", "")
	s.principal("frank", "")
	if mode == "baseline" {
		// There the front end verifies logins by itself, and has a store without users.
		s.options.Define["KEYS"], s.plain = s.keysFile(), s.plainStore()
		s.change("tasks", "$(REDIS_SOCKET)", s.plain)
	}
	return s
}

// change replaces all places of a text in a manifest, of which there has to be one.
func (s *sysE) change(manifest, old, replacement string) {
	s.t.Helper()
	name := "syse-" + manifest + ".yaml"
	if !strings.Contains(s.manifests[name], old) {
		s.t.Fatalf("Sys-E's %s has no %q any more", manifest, old)
	}
	s.manifests[name] = strings.ReplaceAll(s.manifests[name], old, replacement)
}

// start does all of it: open, apply, analyse, start the tasks.
func (s *sysE) start(tasks ...string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Join(s.options.Data, "facts"), 0o755))
	s.must(os.WriteFile(filepath.Join(s.options.Data, "facts/population.jsonl"),
		[]byte(strings.Join(s.facts, "\n")+"\n"), 0o644))
	s.must(os.WriteFile(filepath.Join(s.options.Data, "facts/blacklists.jsonl"), nil, 0o644))
	s.facts = nil
	s.open()
	s.apply()
	s.analyze()
	for _, task := range tasks {
		_, err := s.monitor.StartTask(s.t.Context(), "syse", task)
		s.must(err)
	}
}

// at logs a user in at a task, from an address of the user's region.
func (s *sysE) at(task, user, region string) *browser {
	s.t.Helper()
	there := *s.stack
	there.address = s.addresses[task]
	b := there.browse(map[string]string{"us": "127.0.0.1", "de": "127.0.1.1"}[region])
	if status, session := b.login(user, user); status != http.StatusOK || session.Principal != user {
		s.t.Fatalf("%s at %s: %d %+v", user, task, status, session)
	}
	return b
}
