// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/audit"
)

// keeping is a pipeline whose task obeys COMMANDS of the program probe_raising. Its declared
// taint keeps nothing.
const keeping = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: alices}
spec: {text: "read :- sKeyIs(\"alice\"). update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: keeper}
spec:
  command: [$(PROBE)/probe_raising, COMMANDS]
  runtimeName: probe
  run: Once
  taint: {name: open}
  reads: [news, inbox]
  writes: [DIRECTORY]
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: reader}
spec:
  command: [/bin/true]
  taint: {name: alices}
  reads: [board, drawer, DIRECTORY]
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: keeping}
spec:
  mode: MODE
  tasks: [keeper, reader]
  conduits:
    - name: news
      kind: file
      ingress: true
      paths: [{path: "/news/**", policy: {name: open}}]
    - name: inbox
      kind: file
      ingress: true
      paths: [{path: "/inbox/**", policy: {name: alices}}]
    - name: board
      kind: file
      paths: [{path: "/board/**", policy: {name: open}}]
    - name: drawer
      kind: file
      paths: [{path: "/drawer/**", policy: {name: alices}}]
    - name: public
      kind: file
      directory: true
      paths: [{path: "/public/**", policy: {name: open}}]
    - name: private
      kind: file
      directory: true
      paths: [{path: "/private/**", policy: {name: alices}}]
`

// keeps lets the keeper obey commands in a mode, as a task that writes to a directory, and
// returns what it printed and the reasons of denials.
func keeps(t *testing.T, mode, directory string, commands ...string) (printed []string, denials string) {
	t.Helper()
	s := newStack(t)
	for _, name := range []string{"/news/1.txt", "/inbox/1.txt", "/board/1.txt", "/drawer/1.txt"} {
		s.document(name)
		s.must(os.Chmod(filepath.Join(s.options.Data, name), 0o666))
	}
	var quoted []string
	for _, command := range commands {
		quoted = append(quoted, strconv.Quote(command))
	}
	manifest := strings.Replace(keeping, "COMMANDS", strings.Join(quoted, ", "), 1)
	s.manifests["pipeline.yaml"] = strings.NewReplacer("MODE", mode, "DIRECTORY", directory,
		"DATA", s.options.Data).Replace(manifest)
	s.open()
	s.apply()
	s.records()
	_, err := s.monitor.StartTask(t.Context(), "keeping", "keeper")
	s.must(err)
	status, err := s.monitor.WaitTask(t.Context(), "keeping", "keeper")
	s.must(err)
	text := s.printed("keeping/keeper")
	if status.State != "Succeeded" {
		t.Fatalf("the task ended %+v; it printed %q", status, text)
	}
	for _, r := range s.records() {
		if r.Kind == audit.Denial {
			denials += r.Operation + " " + r.Conduit + ": " + r.Reason + "\n"
		}
	}
	return strings.Split(strings.TrimSpace(text), "\n"), denials
}

// TestTaintIsTracked: a task that was started in a dynamic mode opens nothing natively, so all
// that it reads and writes is decided on by what it has read.
func TestTaintIsTracked(t *testing.T) {
	const (
		readNews    = "open news r DATA/news/1.txt"
		readSecret  = "open secret r DATA/inbox/1.txt"
		writeBoard  = "open board w DATA/board/1.txt"
		writeDrawer = "open drawer w DATA/drawer/1.txt"
		opened      = "opened"
		refused     = "error EACCES"
	)
	for _, test := range []struct {
		name, mode, directory string
		commands, printed     []string
		denial                string
	}{
		{"declared too low, in mode shai", "shai", "public", []string{readSecret, writeBoard},
			[]string{refused, opened}, "the taint does not keep the obligation"},
		{"declared too low, reads a secret", "dynamic", "private", []string{readSecret, writeBoard, writeDrawer},
			[]string{opened, refused, opened}, "write /board/1.txt: "},
		{"the same, logged", "dynamic-lazy", "private", []string{readSecret, writeBoard, writeDrawer},
			[]string{opened, refused, opened}, "write /board/1.txt: "},
		{"has read nothing", "dynamic", "private", []string{writeDrawer, writeBoard}, []string{opened, opened}, ""},
		{"has read what may be shown", "dynamic", "private", []string{readNews, writeBoard}, []string{opened, opened}, ""},
		{"reads a secret after it has opened the board", "dynamic", "private", []string{writeBoard, readSecret},
			[]string{opened, refused}, "read /inbox/1.txt: it could be written to /board/1.txt"},
		{"can name files in public", "dynamic", "public", []string{readNews, readSecret},
			[]string{opened, refused}, "read /inbox/1.txt: it could be written to /public/any"},
		{"makes files of its own", "dynamic", "private",
			[]string{"open own wcx /private/own", "write own", readSecret, "write own", "open own w /private/own"},
			[]string{opened, "written", opened, "written", opened}, ""},
		{"by the system call itself", "dynamic", "public",
			[]string{"open own wc /public/own", "native other w 17 own", "native other wc 17 other"},
			[]string{opened, refused, refused}, ""},
		{"by the system call itself, in mode shai", "shai", "public",
			[]string{"open own wc /public/own", "native other w 17 own", "native other wc 17 other"},
			[]string{opened, opened, opened}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			printed, denials := keeps(t, test.mode, test.directory, test.commands...)
			if difference := cmp.Diff(test.printed, printed); difference != "" {
				t.Errorf("it printed:\n%s\n%s", difference, denials)
			}
			if !strings.Contains(denials, test.denial) {
				t.Errorf("recorded: %s", denials)
			}
		})
	}
}
