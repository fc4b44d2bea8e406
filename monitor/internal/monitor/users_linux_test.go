// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/audit"
)

// reporter is a pipeline whose task says who it is, reads a directory of documents and a
// file of its runtime, and writes a report.
const reporter = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "policy open { read :- true. update :- true. }"}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: NAME}
spec:
  run: Once
  command:
    - /usr/bin/python3
    - -Ic
    - |
      def attempt(path):
          try:
              return open(path).read()
          except OSError as error:
              return type(error).__name__
      with open("/NAME-out/report", "w") as out:
          out.write(attempt("/proc/self/status"))
          for path in ["/NAME-in/1.txt", "/etc/shadow", "$(PRIVATE)", "$(KEY)"]:
              print("read", path, attempt(path).strip(), file=out)
  runtimeName: private
  taint: {name: open}
  reads: [in]
  writes: [out]
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: NAME}
spec:
  mode: MODE
  tasks: [NAME]
  conduits:
    - {name: in, kind: file, directory: true, ingress: true, paths: [{path: "/NAME-in/**", policy: {name: open}}]}
    - {name: out, kind: file, directory: true, paths: [{path: "/NAME-out/**", policy: {name: open}}]}
`

func reporting(t *testing.T, mode string, names ...string) *stack {
	t.Helper()
	if !isSuperuser() {
		t.Skip("only the superuser can start tasks as other users")
	}
	s := newStack(t)
	root := filepath.Dir(s.options.Data)
	s.options.Define["PRIVATE"] = filepath.Join(root, "programs", "private")
	s.options.Runtimes["private"] = append([]string{"/etc/shadow", s.options.Define["PRIVATE"]},
		s.options.Runtimes["system"]...)
	s.options.Key = filepath.Join(root, "tls", "monitor.key")
	s.options.Define["KEY"] = s.options.Key
	for _, path := range []string{s.options.Define["PRIVATE"], s.options.Key} {
		s.must(os.MkdirAll(filepath.Dir(path), 0o755))
		s.must(os.WriteFile(path, []byte("secret"), 0o600))
	}
	s.manifests = map[string]string{}
	for i, name := range names {
		s.document("/" + name + "-in/1.txt")
		text := strings.NewReplacer("NAME", name, "MODE", mode).Replace(reporter)
		if i > 0 {
			_, text, _ = strings.Cut(text, "---") // the policy is the first one's
		}
		s.manifests[name+".yaml"] = text
	}
	s.open()
	return s
}

// report runs a pipeline's task and returns what it wrote.
func (s *stack) report(name string) string {
	s.t.Helper()
	_, err := s.monitor.StartTask(s.t.Context(), name, name)
	s.must(err)
	status, err := s.monitor.WaitTask(s.t.Context(), name, name)
	s.must(err)
	if status.State != "Succeeded" {
		s.t.Fatalf("%s: %s %s", name, status.State, status.Message)
	}
	text, err := os.ReadFile(filepath.Join(s.options.Data, name+"-out", "report"))
	s.must(err)
	return string(text)
}

// In every mode tasks are users of their own in the group of their pipeline, with no privileges,
// and reach no file that user and group of the pipeline may not read.
func TestTasksOfEachPipelineHaveAUser(t *testing.T) {
	for _, mode := range []string{"shai", "dynamic", "audit", "baseline"} {
		t.Run(mode, func(t *testing.T) {
			s := reporting(t, mode, "one", "two")
			s.apply()
			var users []uint32
			for _, name := range []string{"one", "two"} {
				status := s.monitor.pipelines[name].Status()
				users = append(users, status.User, status.Tasks[0].User)
				report := s.report(name)
				for _, want := range []string{
					fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", status.Tasks[0].User),
					fmt.Sprintf("Gid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", status.User),
					"Groups:\t \n", "NoNewPrivs:\t1\n", "CapInh:\t0000000000000000\n", "CapPrm:\t0000000000000000\n",
					"CapEff:\t0000000000000000\n",
					"CapBnd:\t0000000000000000\n", "CapAmb:\t0000000000000000\n",
					"read /" + name + "-in/1.txt /" + name + "-in/1.txt\nthe text\n",
					"read /etc/shadow PermissionError", "read " + s.options.Define["PRIVATE"] + " PermissionError",
					"read " + s.options.Key + " PermissionError",
				} {
					if !strings.Contains(report, want) {
						t.Errorf("the report of %s has no %q:\n%s", name, want, report)
					}
				}
			}
			given := len(users)
			slices.Sort(users)
			if users = slices.Compact(users); len(users) != given || users[0] == 0 {
				t.Errorf("the users of two pipelines and their tasks are %v", users)
			}
		})
	}
}

// Tasks can write on in directories that the tasks of an earlier monitor wrote as the
// superuser. Files with further names stay with their owner.
func TestWrittenDirectoriesBelongToTheTasks(t *testing.T) {
	s := reporting(t, "shai", "one")
	out := filepath.Join(s.options.Data, "one-out")
	s.must(os.MkdirAll(filepath.Join(out, "sub"), 0o700))
	s.must(os.WriteFile(filepath.Join(out, "report"), []byte("earlier"), 0o600))
	s.must(os.WriteFile(filepath.Join(out, "sub/other"), nil, 0o600))
	s.must(os.Link(s.options.Define["PRIVATE"], filepath.Join(out, "linked")))
	s.must(os.Symlink(s.options.Key, filepath.Join(out, "symlink")))
	s.apply()
	s.report("one")
	id := s.monitor.pipelines["one"].Status().User
	for path, want := range map[string]uint32{
		out: id, out + "/report": id, out + "/sub": id, out + "/sub/other": id, out + "/linked": 0, s.options.Key: 0,
		filepath.Join(s.options.Data, "one-in/1.txt"): 0,
	} {
		info, err := os.Stat(path)
		s.must(err)
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid != want {
			t.Errorf("%s belongs to user %d, want %d", path, stat.Uid, want)
		}
	}
	if info, err := os.Stat(out); err != nil || info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("what is made in %s is not the group's: %v, %v", out, info.Mode(), err)
	}
}

// A writable directory is never reached through a symbolic link: the monitor would give
// somebody else's directory away.
func TestWrittenDirectoryThroughALinkIsRefused(t *testing.T) {
	s := reporting(t, "shai", "one")
	elsewhere := filepath.Join(filepath.Dir(s.options.Data), "elsewhere")
	s.must(os.Mkdir(elsewhere, 0o755))
	s.must(os.Symlink(elsewhere, filepath.Join(s.options.Data, "one-out")))
	s.apply()
	if _, err := s.monitor.StartTask(t.Context(), "one", "one"); err == nil {
		t.Error("the task starts")
	}
	if info, err := os.Stat(elsewhere); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the directory was given away: %v, %v", info, err)
	}
}

// unreadable makes the first document private, and its directory.
func (s *stack) unreadable() (document, directory string) {
	s.t.Helper()
	directory = filepath.Join(s.options.Data, "one-in")
	document = filepath.Join(directory, "1.txt")
	s.must(os.Chmod(document, 0o600))
	s.must(os.Chmod(directory, 0o700))
	return document, directory
}

// Documents that the tasks cannot read are never silently missing: apply, status and the
// audit log name one, and say what to type. Typing it helps.
func TestUnreadableDocumentsAreReported(t *testing.T) {
	s := reporting(t, "shai", "one")
	_, directory := s.unreadable()
	result, err := s.monitor.Apply(t.Context(), s.sources())
	s.must(err)
	p := s.monitor.pipelines["one"]
	remedy := fmt.Sprintf("chgrp -R %d %[2]s && chmod -R g+rX %[2]s", p.User().ID, directory)
	says := func(text string) bool {
		return strings.Contains(text, "/one-in/1.txt") && strings.Contains(text, remedy)
	}
	if !slices.ContainsFunc(result.Warnings, says) {
		t.Errorf("apply warns of %q", result.Warnings)
	}
	if !slices.ContainsFunc(s.monitor.statusOf(p).Unreadable, says) {
		t.Errorf("status says %q", s.monitor.statusOf(p).Unreadable)
	}
	if !slices.ContainsFunc(s.records(), func(r audit.Record) bool {
		return r.Kind == audit.Denial &&
			says(r.Reason)
	}) {
		t.Error("the audit log has no record of it")
	}
	if _, err := s.monitor.StartTask(t.Context(), "one", "one"); err == nil || !strings.Contains(err.Error(), remedy) {
		t.Errorf("the task starts although it cannot list its documents: %v", err)
	}
	output, err := shell(strings.Trim(remedy, "\n"))
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	result, err = s.monitor.Apply(t.Context(), s.sources())
	s.must(err)
	if len(result.Warnings) > 0 || len(s.monitor.statusOf(p).Unreadable) > 0 {
		t.Errorf("still reported: %q, %q", result.Warnings, s.monitor.statusOf(p).Unreadable)
	}
	if report := s.report("one"); !strings.Contains(report, "the text") {
		t.Errorf("the document is still not read:\n%s", report)
	}
}

// A directory without documents of its own, which a task has to list, is named before the
// task starts, and not only by its refused start.
func TestUnlistableDirectoriesAreReported(t *testing.T) {
	s := reporting(t, "shai", "one")
	closed, written := filepath.Join(s.options.Data, "one-in/sub/closed"), filepath.Join(s.options.Data, "one-out")
	s.must(os.MkdirAll(closed, 0o755))
	s.must(os.Chmod(closed, 0o700))
	s.must(os.Mkdir(written, 0o700)) // becomes the task's when it starts
	result, err := s.monitor.Apply(t.Context(), s.sources())
	s.must(err)
	p := s.monitor.pipelines["one"]
	remedy := fmt.Sprintf("chgrp -R %d %[2]s && chmod -R g+rX %[2]s", p.User().ID, filepath.Join(s.options.Data, "one-in"))
	for where, warnings := range map[string][]string{
		"apply": result.Warnings, "status": s.monitor.statusOf(p).Unreadable,
	} {
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "one/one cannot list /one-in/sub/closed (mode 0700") ||
			!strings.HasSuffix(warnings[0], remedy) {
			t.Errorf("%s says %q", where, warnings)
		}
	}
	if !slices.ContainsFunc(s.records(), func(r audit.Record) bool {
		return r.Kind == audit.Denial && r.Conduit == "/one-in" && strings.Contains(r.Reason, remedy)
	}) {
		t.Error("the audit log has no record of it")
	}
	if output, err := shell(remedy); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	result, err = s.monitor.Apply(t.Context(), s.sources())
	s.must(err)
	if len(result.Warnings) > 0 || len(s.monitor.statusOf(p).Unreadable) > 0 {
		t.Errorf("still reported: %q, %q", result.Warnings, s.monitor.statusOf(p).Unreadable)
	}
	s.report("one")
}

// reopenGiving opens the monitor anew, with the option to give documents to those who read them.
func (s *stack) reopenGiving(give bool) {
	s.t.Helper()
	s.close()
	s.options.GiveData = give
	s.open()
}

// A monitor does not report documents to which it gives access by itself.
func TestDirectoriesThatWillBeGivenAreNotReported(t *testing.T) {
	s := reporting(t, "shai", "one")
	closed := filepath.Join(s.options.Data, "one-in/closed")
	s.must(os.Mkdir(closed, 0o700))
	s.reopenGiving(true)
	result, err := s.monitor.Apply(t.Context(), s.sources())
	s.must(err)
	if len(result.Warnings) > 0 {
		t.Errorf("apply warns of %q", result.Warnings)
	}
	s.report("one")
}

// A monitor whose data are its own gives documents to the group of those who read them,
// and nothing that has a name somewhere else.
func TestDocumentsAreGivenToTheGroup(t *testing.T) {
	s := reporting(t, "shai", "one")
	document, directory := s.unreadable()
	foreign := filepath.Join(directory, "foreign.txt")
	s.must(os.Link(s.options.Define["PRIVATE"], foreign))
	s.reopenGiving(true)
	result, err := s.monitor.Apply(t.Context(), s.sources())
	s.must(err)
	id := s.monitor.pipelines["one"].Status().User
	for path, want := range map[string]string{
		document: fmt.Sprintf("0/%d 640", id), directory: fmt.Sprintf("0/%d 750", id), foreign: "0/0 600",
	} {
		info, err := os.Stat(path)
		s.must(err)
		stat := info.Sys().(*syscall.Stat_t)
		if got := fmt.Sprintf("%d/%d %o", stat.Uid, stat.Gid, info.Mode().Perm()); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if info, err := os.Stat(directory); err != nil || info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("what is added to %s will not be the group's: %v", directory, err)
	}
	if !slices.ContainsFunc(result.Warnings, func(w string) bool { return strings.Contains(w, "foreign.txt") }) {
		t.Errorf("nobody hears of the document that was not given: %q", result.Warnings)
	}
	if report := s.report("one"); !strings.Contains(report, "the text") {
		t.Errorf("the document is not read:\n%s", report)
	}
}

// Directories without documents of their own are given as well, or the task could not list
// its conduit.
func TestDirectoriesAreGivenToTheGroup(t *testing.T) {
	for _, give := range []bool{false, true} {
		s := reporting(t, "shai", "one")
		s.reopenGiving(give)
		s.document("/one-in/deep/deeper/2.txt")
		root := filepath.Join(s.options.Data, "one-in")
		outside := filepath.Join(filepath.Dir(s.options.Data), "outside")
		s.must(os.Mkdir(outside, 0o700))
		s.must(os.Symlink(outside, filepath.Join(root, "link")))
		s.must(os.Mkdir(filepath.Join(root, "empty"), 0o700))
		s.must(os.Chmod(filepath.Join(root, "deep"), 0o700))
		s.apply()
		_, err := s.monitor.StartTask(t.Context(), "one", "one")
		if !give {
			if err == nil || !strings.Contains(err.Error(), "cannot list") {
				t.Errorf("the task starts although it cannot list its conduit: %v", err)
			}
			continue
		}
		s.must(err)
		_, err = s.monitor.WaitTask(t.Context(), "one", "one")
		s.must(err)
		id := s.monitor.pipelines["one"].Status().User
		for path, want := range map[string]bool{root + "/deep": true, root + "/empty": true, outside: false} {
			info, err := os.Stat(path)
			s.must(err)
			stat := info.Sys().(*syscall.Stat_t)
			const shared = os.ModeSetgid | 0o050
			if given := stat.Gid == id && info.Mode()&shared == shared; given != want {
				t.Errorf("%s is %v of group %d; given %v, want %v", path, info.Mode(), stat.Gid, given, want)
			}
		}
	}
}

func shell(line string) (string, error) {
	output, err := exec.Command("/bin/sh", "-c", line).CombinedOutput()
	return string(output), err
}

// If the administrator put a runtime where only the superuser can get, the monitor opens
// it for a confined task. In mode baseline nobody does, and the task reports this instead
// of starting.
func TestRuntimeInAPrivateDirectory(t *testing.T) {
	for mode, starts := range map[string]bool{"shai": true, "baseline": false} {
		s := reporting(t, mode, "one")
		private := filepath.Dir(s.options.Define["PRIVATE"])
		s.must(os.Chmod(private, 0o700))
		s.apply()
		_, err := s.monitor.StartTask(t.Context(), "one", "one")
		switch {
		case starts && err != nil:
			t.Errorf("mode %s: %v", mode, err)
		case !starts && (err == nil || !strings.Contains(err.Error(), private+" is closed to other users")):
			t.Errorf("mode %s: the task starts, or does not say why not: %v", mode, err)
		}
		_, err = s.monitor.WaitTask(t.Context(), "one", "one")
		s.must(err)
	}
}
