// SPDX-License-Identifier: BSD-2-Clause

package top

import (
	"cmp"
	"slices"
	"time"

	"shai.dev/monitor/internal/monitor/api"
)

// View is what a monitor did between two samples. Rates are per second; CPU is in cores, so
// that 1 is one core that is always busy.
type View struct {
	Time        time.Time `json:"time"`
	Seconds     float64   `json:"seconds"` // between the samples
	Version     string    `json:"version"`
	Ready       bool      `json:"ready"`
	Reason      string    `json:"reason,omitempty"` // why it is not ready
	Enforcement string    `json:"enforcement"`      // that this machine can do
	MonitorCPU  float64   `json:"monitorCPU"`
	// EnforcementMicrosecondsPerSession is the CPU time of the monitor and its supervisors
	// for each session that ended. It has no part of what the kernel's sandbox costs in the
	// tasks themselves, which a Benchmark measures. Nil if no session ended.
	EnforcementMicrosecondsPerSession *float64   `json:"enforcementMicrosecondsPerSession,omitempty"`
	Pipelines                         []Pipeline `json:"pipelines"`
	// Denials counts what was refused, by pipeline, task, policy and reason; most first.
	Denials []Denial `json:"denials"`
	// Sessions are live ones, at most 100 of each pipeline, the newest first.
	Sessions []api.SessionStatus `json:"sessions"`
}

// Pipeline is what one pipeline did.
type Pipeline struct {
	Name              string  `json:"name"`
	Mode              string  `json:"mode"`
	Sessions          int     `json:"sessions"` // open now
	SessionsPerSecond float64 `json:"sessionsPerSecond"`
	Opens             Opens   `json:"opensPerSecond"`
	Denials           float64 `json:"denialsPerSecond"`
	WouldDeny         float64 `json:"wouldDenyPerSecond"`
	// Coverage is the share of the expected accesses that the last analysis granted, and
	// AnalysisAgeSeconds how long ago that was. Nil before the first one.
	Coverage           *float64 `json:"coverage,omitempty"`
	AnalysisAgeSeconds *float64 `json:"analysisAgeSeconds,omitempty"`
	Tasks              []Task   `json:"tasks"`
}

// Opens are the opens of documents per second by who answered: the kernel by itself (as
// the workers say), the supervisor from what was decided ahead, the monitor.
type Opens struct {
	Native     float64 `json:"native"`
	Supervisor float64 `json:"supervisor"`
	Monitor    float64 `json:"monitor"`
}

// Task is what one task took.
type Task struct {
	Name          string  `json:"name"`
	State         string  `json:"state"`
	Enforcement   string  `json:"enforcement"`
	Restarts      int     `json:"restarts"`
	CPU           float64 `json:"cpu"`
	SupervisorCPU float64 `json:"supervisorCPU"`
	Workers       int     `json:"workers"` // processes that serve sessions, or wait for one
}

// Denial is how often something was refused for one reason.
type Denial struct {
	Pipeline string  `json:"pipeline"`
	Task     string  `json:"task"`
	Policy   string  `json:"policy,omitempty"` // empty: it was not a policy that refused
	Reason   string  `json:"reason"`
	Count    float64 `json:"count"`
}

// Compare returns what happened from one sample to a later one.
func Compare(before, after Sample) View {
	seconds := after.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		seconds = 1 // two samples of one instant: nothing has happened in between
	}
	change := change{before, after, seconds}
	view := View{
		Time: after.at, Seconds: seconds, Version: after.status.Version, Ready: after.status.Ready,
		Reason: after.status.Reason, Enforcement: after.status.Machine.Enforcement,
		MonitorCPU: change.rate("process_cpu_seconds_total", nil),
		Pipelines:  []Pipeline{}, Sessions: []api.SessionStatus{}, Denials: change.denials(),
	}
	for _, status := range after.status.Pipelines {
		view.Pipelines = append(view.Pipelines, change.pipeline(status))
		view.Sessions = append(view.Sessions, status.Sessions...)
	}
	slices.SortStableFunc(view.Sessions, func(a, b api.SessionStatus) int { return b.Since.Compare(a.Since) })
	if ended := after.increase(before, "shai_sessions_total", nil); ended > 0 {
		took := after.increase(before, "process_cpu_seconds_total", nil) +
			after.increase(before, "shai_cpu_seconds_total", labels{"part": "supervisor"})
		each := took / ended * 1e6
		view.EnforcementMicrosecondsPerSession = &each
	}
	return view
}

// change is two samples, and the seconds between them.
type change struct {
	before, after Sample
	seconds       float64
}

func (c change) rate(metric string, wanted labels) float64 {
	return c.after.increase(c.before, metric, wanted) / c.seconds
}

func (c change) pipeline(status api.PipelineStatus) Pipeline {
	own := labels{"pipeline": status.Name}
	of := func(label, value string) labels { return labels{"pipeline": status.Name, label: value} }
	found := Pipeline{
		Name: status.Name, Mode: status.Mode, Sessions: status.SessionTotal,
		SessionsPerSecond: c.rate("shai_sessions_total", own),
		Opens: Opens{
			Native:     c.rate("shai_native_opens_total", own),
			Supervisor: c.rate("shai_opens_total", of("path", "supervisor")),
			Monitor:    c.rate("shai_opens_total", of("path", "monitor")),
		},
		Denials:   c.rate("shai_denials_total", own),
		WouldDeny: c.rate("shai_would_deny_total", own),
		Tasks:     []Task{},
	}
	if all, _ := c.after.sum("shai_analysis_accesses", own); all > 0 {
		granted, _ := c.after.sum("shai_analysis_accesses", of("outcome", "granted"))
		coverage := granted / all
		found.Coverage = &coverage
	}
	if at, ok := c.after.sum("shai_analysis_last_success_timestamp_seconds", own); ok && at > 0 {
		age := max(0, float64(c.after.at.UnixNano())/1e9-at)
		found.AnalysisAgeSeconds = &age
	}
	for _, task := range status.Tasks {
		found.Tasks = append(found.Tasks, c.task(status.Name, task))
	}
	return found
}

func (c change) task(pipeline string, status api.TaskStatus) Task {
	part := func(name string) labels { return labels{"pipeline": pipeline, "task": status.Name, "part": name} }
	workers, _ := c.after.sum("shai_workers", labels{"pipeline": pipeline, "task": status.Name})
	return Task{
		Name: status.Name, State: status.State, Enforcement: status.Enforcement, Restarts: status.Restarts,
		CPU:           c.rate("shai_cpu_seconds_total", part("task")),
		SupervisorCPU: c.rate("shai_cpu_seconds_total", part("supervisor")),
		Workers:       int(workers),
	}
}

func (c change) denials() []Denial {
	found := []Denial{}
	for _, one := range c.after.series["shai_denials_total"] {
		count := c.after.increase(c.before, "shai_denials_total", one.labels)
		if count == 0 {
			continue
		}
		found = append(found, Denial{Pipeline: one.labels["pipeline"], Task: one.labels["task"],
			Policy: one.labels["policy"], Reason: one.labels["reason"], Count: count})
	}
	slices.SortFunc(found, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.Task, b.Task),
			cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Reason, b.Reason))
	})
	return found
}
