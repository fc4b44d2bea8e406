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

// A task has as many processes and as much memory as its manifest says, and one that needs more
// ends: a shell that cannot fork does.
func TestResourcesOfATask(t *testing.T) {
	const (
		many  = "for i in `seq 100`; do sleep 1000 & done; echo ready; wait"
		large = "dd if=/dev/zero of=/dev/null bs=100M count=1 || exit 1; echo ready; sleep 1000"
	)
	for _, test := range []struct{ feature, limit, command, want string }{
		{"limit on processes", "processes: 64", many, "Failed"},
		{"limit on processes", "processes: 128", many, "Running"},
		{"limit on memory", "totalMemoryMegabytes: 64", large, "Failed"},
		{"limit on memory", "totalMemoryMegabytes: 256", large, "Running"},
		{"limit on processors", "cpuMillicores: 500", "echo ready; sleep 1000", "Running"},
	} {
		t.Run(test.limit, func(t *testing.T) {
			if !slices.ContainsFunc(sandbox.New(sandbox.Options{}).Probe().Features, func(f sandbox.Feature) bool {
				return f.Name == test.feature && f.Present
			}) {
				t.Skipf("this machine has no %s of a task", test.feature)
			}
			s := newStack(t)
			s.open()
			text := strings.Replace(restarted, "COMMAND", test.command, 1)
			text = strings.Replace(text, "  taint:", "  resources: {"+test.limit+"}\n  taint:", 1)
			s.must(applyText(s.monitor, text))
			_, err := s.monitor.StartTask(t.Context(), "p", "restarted")
			s.must(err)
			task := s.monitor.pipelines["p"].Task("restarted")
			waiting.Until(t, "the task runs or has failed", func() bool { return task.Status().State != "Starting" })
			if got := task.Status(); got.State != test.want {
				t.Errorf("%+v, want %s", got, test.want)
			}
		})
	}
}
