// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/waiting"
)

// A task has as many processes as its manifest says, and one that needs more ends: a shell
// that cannot fork does.
func TestProcessesOfATask(t *testing.T) {
	if !slices.ContainsFunc(sandbox.New(sandbox.Options{}).Probe().Features, func(f sandbox.Feature) bool {
		return f.Name == "limit on processes" && f.Present
	}) {
		t.Skip("this machine cannot limit the processes of a task")
	}
	for limit, want := range map[string]string{"64": "Failed", "128": "Running"} {
		t.Run(limit, func(t *testing.T) {
			s := newStack(t)
			s.open()
			text := strings.Replace(restarted, "COMMAND", "for i in `seq 100`; do sleep 1000 & done; echo ready; wait", 1)
			text = strings.Replace(text, "  taint:", "  resources: {processes: "+limit+"}\n  taint:", 1)
			s.must(applyText(s.monitor, text))
			_, err := s.monitor.StartTask(t.Context(), "p", "restarted")
			s.must(err)
			task := s.monitor.pipelines["p"].Task("restarted")
			waiting.Until(t, "the task runs or has failed", func() bool { return task.Status().State != "Starting" })
			if got := task.Status(); got.State != want {
				t.Errorf("%+v, want %s", got, want)
			}
		})
	}
}
