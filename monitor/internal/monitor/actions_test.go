// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// actions are the lines of a transcript that are not a user's: those before the monitor's
// start, and those of its operator.
var actions map[string]func(p *player, arguments string) string

func init() { // the functions refer to the table's type by way of player.do
	actions = map[string]func(*player, string) string{
		"document":   (*player).addDocument,
		"principal":  (*player).addPrincipal,
		"region":     (*player).addRegion,
		"fact":       (*player).addFact,
		"revocation": (*player).setRevocation,
		"role":       func(p *player, _ string) string { p.withParameter("role", roleOfFact); return "" },
		"key-value":  func(p *player, _ string) string { p.startKeyValue(); return "" },
		"typed":      (*player).addTyped,
		"tuples":     (*player).addTypedTuples,
		"shows":      (*player).showsFile,
		"start":      (*player).starts,
		"apply":      (*player).applies,
		"analyze":    func(p *player, _ string) string { return p.showAnalysis(p.analyze()) },
		"facts":      (*player).changesFacts,
		"ingest":     (*player).ingests,
		"background": (*player).follows,
		"choices":    func(p *player, _ string) string { p.withChoices(); return "" },
		"choose":     (*player).chooses,
		"mode":       (*player).setsMode,
		"run":        (*player).runs,
		"restart":    (*player).restarts,
		"second":     (*player).secondMonitor,
		"audit":      (*player).showAudit,
		"state":      (*player).showState,
	}
}

func (p *player) addDocument(name string) string { p.document(name); return "" }

func (p *player) addPrincipal(arguments string) string {
	name, region, _ := strings.Cut(arguments, " home ")
	p.principal(name, region)
	return ""
}

func (p *player) addRegion(arguments string) string {
	prefix, region, _ := strings.Cut(arguments, " is ")
	p.fact("regions", "prefix", prefix, region)
	return ""
}

func (p *player) addFact(text string) string {
	fact := p.parsedFact(text)
	var tuple []string
	for _, value := range fact.Tuple.Values() {
		tuple = append(tuple, value.Text())
	}
	p.fact(fact.Conduit, fact.Says, tuple...)
	return ""
}

func (p *player) setRevocation(how string) string {
	p.replace("revocation: lazy", "revocation: "+how)
	return ""
}

// replace changes the manifest.
func (p *player) replace(old, with string) {
	p.t.Helper()
	text := p.manifests["pipeline.yaml"]
	if !strings.Contains(text, old) {
		p.t.Fatalf("transcript: the manifest has no %q", old)
	}
	p.manifests["pipeline.yaml"] = strings.Replace(text, old, with, 1)
}

// starts starts everything. "without analysis" leaves every access to be decided as
// it happens.
func (p *player) starts(how string) string {
	p.open()
	p.apply()
	shown := ""
	if how != "without analysis" {
		shown = p.showAnalysis(p.analyze())
	}
	p.startWorkers()
	p.records()
	p.counts = p.interceptions()
	return shown
}

func (p *player) showAnalysis(report api.Analysis) string {
	return fmt.Sprintf("%d conduits in %d classes, %d instances", report.Conduits, report.Classes, report.Instances)
}

// applies applies another policy: "policy NAME: TEXT" gives it another read rule.
func (p *player) applies(arguments string) string {
	p.t.Helper()
	name, rule, _ := strings.Cut(strings.TrimPrefix(arguments, "policy "), ": ")
	text := p.manifests["pipeline.yaml"]
	head, rest, found := strings.Cut(text, "metadata: {name: "+name+"}")
	if !found {
		p.t.Fatalf("transcript: no policy is called %s", name)
	}
	rest = regexp.MustCompile(`(?m)^      read .*$`).ReplaceAllStringFunc(rest, once("      "+rule))
	p.manifests["pipeline.yaml"] = head + "metadata: {name: " + name + "}" + rest
	p.apply()
	p.awaitIdle()
	p.counts = p.interceptions() // the front end has been started again
	return fmt.Sprintf("bundle %d", p.monitor.state().Bundle().Version)
}

// once replaces the first match only.
func once(with string) func(string) string {
	done := false
	return func(match string) string {
		if done {
			return match
		}
		done = true
		return with
	}
}

func (p *player) changesFacts(arguments string) string {
	how, text, _ := strings.Cut(arguments, " ")
	change := api.FactChange{Add: []api.Fact{p.parsedFact(text)}}
	if how == "remove" {
		change = api.FactChange{Remove: change.Add}
	}
	result := p.changeFacts(change)
	return fmt.Sprintf("%d removed, %d added, %d instances affected, %d sessions ended",
		result.Removed, result.Added, result.Instances, result.SessionsReset)
}

func (p *player) setsMode(mode string) string {
	_, err := p.monitor.SetMode(context.Background(), "probe", mode)
	if err != nil {
		return err.Error()
	}
	return "mode " + mode
}

// runs runs a task to its end and shows what it printed.
func (p *player) runs(task string) string {
	_, err := p.monitor.StartTask(p.t.Context(), "probe", task)
	if err != nil {
		return err.Error()
	}
	status, err := p.monitor.WaitTask(p.t.Context(), "probe", task)
	p.must(err)
	var text []byte
	waiting.Until(p.t, "the task's output", func() bool {
		text = p.printed(task)
		return strings.Count(string(text), "\n") == 3
	})
	p.counts["path"] = p.interceptions()["path"] // what programs look for as they start is the system's
	return string(text) + status.State + p.intercepted()
}

// printed is what a task has printed. Reading it by the API would be recorded.
func (p *player) printed(task string) []byte {
	logs, err := filepath.Glob(filepath.Join(p.options.State, "logs/probe", task, "*.log"))
	p.must(err)
	if len(logs) == 0 {
		return nil
	}
	text, err := os.ReadFile(logs[0])
	p.must(err)
	return text
}

// restarts ends the monitor and starts it again on the same state.
func (p *player) restarts(string) string {
	p.close()
	p.open()
	p.startWorkers()
	p.counts = p.interceptions()
	return p.showState("")
}

// secondMonitor tries to open the state a second time.
func (p *player) secondMonitor(string) string {
	second, err := Open(p.t.Context(), p.options)
	if err == nil {
		p.must(second.Close())
		return "opened"
	}
	return strings.ReplaceAll(err.Error(), p.options.State, "<state>")
}

// showAudit shows new records; "audit of OPERATION" waits first for one about that
// operation, for what is recorded after the task has its answer. "audit of ~CALL"
// waits where the system tells of that call.
func (p *player) showAudit(arguments string) string {
	var list []audit.Record
	wanted, waits := strings.CutPrefix(arguments, "of ")
	wanted, own := strings.CutPrefix(wanted, "~")
	if waits && (isReference || !own) {
		waiting.Until(p.t, "audit record of "+wanted, func() bool {
			list = append(list, p.records()...)
			for _, r := range list {
				if r.Operation == wanted {
					return true
				}
			}
			return false
		})
	} else {
		list = p.records()
	}
	var out strings.Builder
	for _, r := range list {
		if r.Kind != audit.Task && r.Kind != audit.Recovery {
			out.WriteString(p.showRecord(r))
		}
	}
	return out.String()
}

func (p *player) showState(string) string {
	status, err := p.monitor.Status(p.t.Context())
	p.must(err)
	analyzed := "not analysed"
	if report, err := p.monitor.LatestAnalysis(p.t.Context(), "probe"); err == nil {
		analyzed = p.showAnalysis(report)
	}
	return fmt.Sprintf("bundle %d, mode %s, %d sessions, %s",
		status.Bundle.Version, status.Pipelines[0].Mode, status.Pipelines[0].SessionTotal, analyzed)
}
