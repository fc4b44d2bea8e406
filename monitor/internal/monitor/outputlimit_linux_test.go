// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"io/fs"
	"path/filepath"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/tasklog"
)

// flood is a pipeline whose task prints three times what a log holds.
const flood = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: flood}
spec:
  command: [/usr/bin/head, -c, "100663296", /dev/zero]
  runtimeName: system
  run: Once
  taint: {name: open}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: p}
spec: {mode: shai, tasks: [flood]}
`

// A task cannot fill the disk with what it prints, even without the end of a line.
func TestFloodOfOutput(t *testing.T) {
	s := newStack(t)
	s.open()
	s.must(applyText(s.monitor, flood))
	_, err := s.monitor.StartTask(t.Context(), "p", "flood")
	s.must(err)
	if status, err := s.monitor.WaitTask(t.Context(), "p", "flood"); err != nil || status.State != "Succeeded" {
		t.Fatalf("%+v, %v", status, err)
	}
	var sizes []int64
	s.must(filepath.WalkDir(filepath.Join(s.options.State, "logs"), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		about, err := entry.Info()
		sizes = append(sizes, about.Size())
		return err
	}))
	const most = tasklog.MaxSize
	if len(sizes) != 2 || sizes[0] > most || sizes[1] > most || sizes[0]+sizes[1] <= most {
		t.Errorf("files of %d bytes", sizes)
	}
	log, err := s.monitor.TaskLog(t.Context(), api.TaskLogRequest{Pipeline: "p", Task: "flood"})
	if err != nil || len(log.Text) != 1<<20 || !log.Shortened {
		t.Errorf("%d bytes, %v, %v", len(log.Text), log.Shortened, err)
	}
}
