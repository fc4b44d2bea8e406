// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/runtimeroot"
)

// snoop reads a file by its physical path, with all of its runtime available.
const snoop = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: owned}
spec:
  text: |
    policy owned(owner) { read :- sKeyIs(owner). }
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: snoop}
spec:
  run: Once
  command: [/bin/cat, $(FILE)]
  runtimeName: snoop
  taint: {name: owned, arguments: {owner: alice}}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: snoop}
spec:
  tasks: [snoop]
  conduits:
    - name: inbox
      kind: file
      ingress: true
      paths:
        - {path: "/inbox/{owner}/**", policy: {name: owned, arguments: {owner: "{owner}"}}}
`

// snooping is a monitor with bob's file, and a root beside the data.
func snooping(t *testing.T) (s *stack, root string) {
	t.Helper()
	s = newStack(t)
	root = filepath.Dir(s.options.Data)
	s.document("/inbox/bob/1.txt")
	s.options.Socket = filepath.Join(root, "run", "monitor.sock")
	s.options.Define["REDIS_SOCKET"] = filepath.Join(root, "store", "socket")
	s.options.Define["FILE"] = filepath.Join(s.options.Data, "inbox/bob/1.txt")
	s.options.Runtimes["snoop"] = s.options.Runtimes["system"]
	s.options.Key = filepath.Join(root, "tls", "monitor.key")
	s.options.Secrets = filepath.Join(root, "kv", "secrets.json")
	for _, directory := range []string{"run", "tls", "kv", "store", "programs", "pool/other"} {
		s.must(os.MkdirAll(filepath.Join(root, directory), 0o755))
	}
	s.must(os.WriteFile(s.options.Key, nil, 0o600))
	s.must(os.WriteFile(s.options.Secrets, nil, 0o600))
	s.must(os.WriteFile(filepath.Join(root, "pool/other/.shai-member"), nil, 0o600))
	s.must(os.Symlink(filepath.Join(s.options.Data, "inbox"), filepath.Join(root, "into-data")))
	s.open()
	return s, root
}

func (s *stack) applyRuntime(roots ...string) error { return s.applyWithRuntime(snoop, roots...) }

// applyWithRuntime gives the monitor these roots, beside the system's, as the runtime snoop.
func (s *stack) applyWithRuntime(text string, roots ...string) error {
	s.options.Runtimes["snoop"] = append(roots, s.options.Runtimes["system"]...)
	return s.applyThis(text)
}

func (s *stack) applyThis(text string) error {
	s.manifests = map[string]string{"pipeline.yaml": text}
	_, err := s.monitor.Apply(s.t.Context(), s.sources())
	return err
}

// No bundle is accepted under which a task has data or secrets in its runtime.
func TestRuntimeThatReachesDataIsRefused(t *testing.T) {
	s, root := snooping(t)
	for roots, want := range map[string]string{
		"/":                                     "contains the data directory",
		filepath.Dir(root):                      "contains the data directory",
		root:                                    "contains the data directory",
		s.options.Data:                          "is the data directory",
		filepath.Join(s.options.Data, "inbox"):  "lies in the data directory",
		filepath.Join(root, "into-data"):        "lies in the data directory",
		s.options.State:                         "is the monitor's state directory",
		filepath.Join(s.options.State, "audit"): "lies in the monitor's state directory",
		filepath.Join(root, "run"):              "contains the monitor's socket",
		filepath.Join(root, "tls"):              "contains the monitor's private key",
		s.options.Key:                           "is the monitor's private key",
		filepath.Join(root, "kv"):               "is the directory of the key-value store's secrets",
		s.options.Secrets:                       "lies in the directory of the key-value store's secrets",
		filepath.Join(root, "pool/other"):       "lies in what belongs to another monitor, or to a member",
		"/proc":                                 "a directory of the kernel's own files",
		"/proc/keys":                            "a directory of the kernel's own files",
	} {
		if err := s.applyRuntime(roots); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("runtime %s: %v, want %q", roots, err, want)
		}
	}
	for _, roots := range []string{filepath.Join(root, "programs"), "/usr", "/etc/passwd"} {
		if err := s.applyRuntime(roots); err != nil {
			t.Errorf("runtime %s is refused: %v", roots, err)
		}
	}
}

// A path may lead elsewhere after the bundle was applied: it is checked again when the
// task starts, and the refusal is recorded.
func TestRuntimeIsCheckedAgainAtTheStart(t *testing.T) {
	s, root := snooping(t)
	moving := filepath.Join(root, "moving")
	s.must(os.Symlink(filepath.Join(root, "programs"), moving))
	s.must(s.applyRuntime(moving))
	start := func() error {
		_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
		return err
	}
	s.must(start())
	_, err := s.monitor.WaitTask(t.Context(), "snoop", "snoop")
	s.must(err)
	s.must(os.Remove(moving))
	s.must(os.Symlink(s.options.Data, moving))
	s.records()
	const want = "is the data directory"
	if err := start(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the task starts with data in its runtime: %v", err)
	}
	if !slices.ContainsFunc(s.records(), func(r audit.Record) bool {
		return r.Kind == audit.Denial &&
			strings.Contains(r.Reason, want)
	}) {
		t.Error("the audit log has no record of it")
	}
}

// A store's socket leads to its tuples, when the bundle is applied and when the task
// starts.
func TestRuntimeThatReachesAStoreIsRefused(t *testing.T) {
	s, root := snooping(t)
	store, moving := filepath.Join(root, "store"), filepath.Join(root, "moving")
	text := snoop + "  keyValue: {socket: $(REDIS_SOCKET)}\n"
	const want = "contains the socket of a key-value store"
	if err := s.applyWithRuntime(text, store); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("runtime %s: %v, want %q", store, err, want)
	}
	s.must(os.Symlink(filepath.Join(root, "programs"), moving))
	s.must(s.applyWithRuntime(text, moving))
	atStart := func() error {
		guarded, err := s.monitor.services.Guarded()
		s.must(err)
		_, err = runtimeroot.Check([]string{moving}, guarded)
		return err
	}
	if err := atStart(); err != nil {
		t.Errorf("a runtime beside the store: %v", err)
	}
	s.must(os.Remove(moving))
	s.must(os.Symlink(store, moving))
	if err := atStart(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the task starts with the store in its runtime: %v", err)
	}
}

// The data of the other monitors of the machine are no program either, when the bundle is
// applied and when the task starts.
func TestRuntimeInDataOfAnotherMonitor(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only monitors that are the superuser share a registry")
	}
	s, root := snooping(t)
	other := filepath.Join(root, "programs", "other", "data")
	s.must(os.MkdirAll(other, 0o755))
	s.must(s.applyRuntime(other)) // nobody has said so far that it is data
	_, err := s.options.TaskIDs.Of(other, "someone")
	s.must(err)
	const want = "what belongs to another monitor"
	if _, err := s.monitor.StartTask(t.Context(), "snoop", "snoop"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the task starts: %v", err)
	}
	for _, roots := range []string{other, filepath.Dir(other), filepath.Join(root, "programs")} {
		err := s.applyRuntime(roots)
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(strings.ReplaceAll(err.Error(), roots, ""), root) {
			t.Errorf("runtime %s: %v, want %q and no other path", roots, err, want)
		}
	}
	s.must(os.RemoveAll(other))
	s.must(s.applyRuntime(filepath.Join(root, "programs")))
}

// late is a script that waits, and then reads and lists a place, and reads a file of its own. It
// executes nothing.
const late = `
while [ ! -e PROGRAMS/go ]; do :; done
read text <PLACE/1.txt
echo "read $text"
for one in PLACE/*; do echo "listed $one"; done
read text <PROGRAMS/own
echo "own $text"
`

// A task that runs does not see what another monitor, or a member of a pool, gets beneath its
// runtime later.
func TestPlacesMadeBeneathARunningTasksRuntime(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only monitors that are the superuser share a registry")
	}
	for name, claim := range map[string]func(s *stack, place string){
		"nobody's": func(*stack, string) {},
		"data of another monitor": func(s *stack, place string) {
			_, err := s.options.TaskIDs.Of(filepath.Join(place, "data"), "someone")
			s.must(err)
		},
		"a member": func(s *stack, place string) {
			s.must(os.WriteFile(filepath.Join(place, ".shai-member"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := snooping(t)
			programs := filepath.Join(root, "programs")
			place := filepath.Join(programs, "deep", "place")
			data := filepath.Join(place, "data")
			s.must(os.WriteFile(programs+"/own", []byte("text\n"), 0o644))
			script := strings.NewReplacer("PROGRAMS", programs, "PLACE", data).Replace(late)
			s.must(os.WriteFile(programs+"/late.sh", []byte(script), 0o644))
			text := strings.Replace(snoop, "[/bin/cat, $(FILE)]", "[/bin/sh, "+programs+"/late.sh]", 1)
			s.must(s.applyWithRuntime(text, programs))
			_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
			s.must(err)
			s.must(os.MkdirAll(data, 0o755))
			s.must(os.WriteFile(data+"/1.txt", []byte("the secret\n"), 0o644))
			claim(s, place)
			s.must(os.WriteFile(programs+"/go", nil, 0o644))
			status, err := s.monitor.WaitTask(t.Context(), "snoop", "snoop")
			s.must(err)
			printed := s.printed("snoop/snoop")
			t.Logf("%s: %s", status.State, printed)
			isOthers := name != "nobody's"
			recorded := slices.ContainsFunc(s.records(), func(r audit.Record) bool {
				return r.Kind == audit.Denial && strings.Contains(r.Reason, "belongs to another monitor")
			})
			if strings.Contains(printed, "the secret") == isOthers || strings.Contains(printed, "listed "+data+"/1.txt") == isOthers ||
				!strings.Contains(printed, "own text") || recorded != isOthers {
				t.Errorf("recorded %v; printed:\n%s", recorded, printed)
			}
		})
	}
}

// A task in mode baseline, which may open whatever its user may, finds nothing in the place of
// another monitor's data.
func TestDataOfAnotherMonitorInModeBaseline(t *testing.T) {
	if !isSuperuser() {
		t.Skip("only monitors that are the superuser share a registry")
	}
	s, root := snooping(t)
	other := filepath.Join(root, "other", "data")
	s.must(os.MkdirAll(other, 0o755))
	s.must(os.WriteFile(other+"/1.txt", []byte("the secret\n"), 0o644))
	list := strings.NewReplacer("[/bin/cat, $(FILE)]", `[/bin/sh, -c, "cat `+other+`/1.txt; echo `+other+`/*"]`,
		"  tasks: [snoop]", "  mode: baseline\n  tasks: [snoop]").Replace(snoop)
	before := ""
	for _, isOthers := range []bool{false, true} {
		if isOthers {
			_, err := s.options.TaskIDs.Of(other, "someone")
			s.must(err)
		}
		s.must(s.applyWithRuntime(list))
		_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
		s.must(err)
		_, err = s.monitor.WaitTask(t.Context(), "snoop", "snoop")
		s.must(err)
		printed := strings.TrimPrefix(s.printed("snoop/snoop"), before)
		before += printed
		if strings.Contains(printed, "the secret") == isOthers || strings.Contains(printed, other+"/*") != isOthers {
			t.Errorf("another's: %v; printed: %s", isOthers, printed)
		}
	}
}

// A document is no program, under whatever name. Other programs may have several names.
func TestHardLinkAsTheProgram(t *testing.T) {
	s, root := snooping(t)
	programs := filepath.Join(root, "programs")
	script := []byte("#!/bin/cat\n")
	s.must(os.WriteFile(s.options.Define["FILE"], script, 0o644))
	s.must(os.Chmod(s.options.Define["FILE"], 0o755))
	s.must(os.Link(s.options.Define["FILE"], programs+"/document"))
	s.must(os.WriteFile(programs+"/program", script, 0o755))
	s.must(os.Link(programs+"/program", programs+"/second-name"))
	for name, runs := range map[string]bool{"document": false, "program": true} {
		s.must(s.applyWithRuntime(strings.Replace(snoop, "/bin/cat", filepath.Join(programs, name), 1), programs))
		_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
		if (err == nil) != runs || !runs && !strings.Contains(err.Error(), "is also a document") {
			t.Errorf("%s: %v", name, err)
		}
		_, err = s.monitor.WaitTask(t.Context(), "snoop", "snoop") // or the next bundle would restart it
		s.must(err)
	}
}

// A document that has another name beneath a runtime is the same document there. Other
// files with several names can be read.
func TestHardLinksInTheRuntime(t *testing.T) {
	s, root := snooping(t)
	programs := filepath.Join(root, "programs")
	s.must(os.Link(s.options.Define["FILE"], programs+"/document"))
	s.must(os.WriteFile(programs+"/one-name", []byte("the text"), 0o644))
	s.must(os.WriteFile(programs+"/two-names", []byte("the text"), 0o644))
	s.must(os.Link(programs+"/two-names", programs+"/second-name"))
	for name, readable := range map[string]bool{"document": false, "one-name": true, "two-names": true} {
		s.options.Define["REDIS_SOCKET"] = filepath.Join(root, "store", "socket")
		s.options.Define["FILE"] = filepath.Join(programs, name)
		s.must(s.applyRuntime(programs))
		_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
		s.must(err)
		status, err := s.monitor.WaitTask(t.Context(), "snoop", "snoop")
		s.must(err)
		recorded := slices.ContainsFunc(s.records(), func(r audit.Record) bool {
			return r.Kind == audit.Denial && strings.Contains(r.Reason, "is also a document")
		})
		if read := status.State == "Succeeded"; read != readable || recorded == readable {
			t.Errorf("%s: %s (%s), recorded %v", name, status.State, status.Message, recorded)
		}
	}
}

// The monitor reads what a task executes with its own rights. It looks at nothing that is
// not in the task's runtime, and errors show nothing of it.
func TestProgramBesideTheRuntime(t *testing.T) {
	s, root := snooping(t)
	outside := filepath.Join(root, "outside")
	script := []byte("#!confidential words\n")
	s.must(os.WriteFile(outside, script, 0o755))
	s.must(os.WriteFile(s.options.Define["FILE"], script, 0o644))
	away := filepath.Join(root, "away")
	s.must(os.Symlink(s.options.State, away))
	for _, program := range []string{outside, s.options.Define["FILE"], away + "/nothing", "/bin/cat"} {
		s.must(s.applyThis(strings.Replace(snoop, "[/bin/cat", "["+program, 1)))
		_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
		if program == "/bin/cat" {
			s.must(err)
		} else if err == nil || strings.Contains(err.Error(), "confidential") || strings.Contains(err.Error(), s.options.State) {
			t.Errorf("%s: %v", program, err)
		}
	}
}
