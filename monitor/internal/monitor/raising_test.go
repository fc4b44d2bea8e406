// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/tasklog"
	"shai.dev/monitor/internal/waiting"
)

// TestRaising plays testdata/raising: the commands of one run of probe_raising, the lines that
// it prints, and what is recorded about it.
func TestRaising(t *testing.T) {
	playFolder(t, "testdata/raising", func(t *testing.T, transcript string) string {
		return playRaising(newRaising(t), transcript)
	})
}

// What a program prints after the raise is under the new taint, and what it has printed before
// does not get under the old one afterwards.
func TestRaisedOutput(t *testing.T) {
	s := newRaising(t)
	s.drafts("shai", "say before", "raise personal close", "say after")
	task := s.monitor.pipelines["raising"].Task("drafting")
	for who, reads := range map[string]bool{"": true, "alice": true, "bob": false} {
		log, err := task.ReadLog(pipeline.Reader{Principal: who}, pipeline.Excerpt{Limit: 1 << 20})
		if (err == nil) != reads || reads && !strings.Contains(string(log.Text), "after\n") {
			t.Errorf("%q reads %q, %v", who, log.Text, err)
		}
	}
	for _, log := range s.logsOf("raising/drafting")[:1] {
		if page, err := tasklog.Read(log, "", 1<<20); err != nil || strings.Contains(string(page.Text), "after") {
			t.Errorf("under the old taint: %q, %v", page.Text, err)
		}
	}
}

// A program that is started again begins with the first taint again.
func TestRaiseEndsWithTheProgram(t *testing.T) {
	s := newRaising(t)
	s.drafts("shai", "open public wc /public/notice", "raise personal close")
	s.records()
	_, err := s.monitor.StartTask(t.Context(), "raising", "drafting")
	s.must(err)
	_, err = s.monitor.WaitTask(t.Context(), "raising", "drafting")
	s.must(err)
	if len(s.recordsThat("from drafting to personal; closed: /public/notice (descriptor ")) != 1 {
		t.Errorf("started again, it has not raised its taint again; it printed %q", s.printed("raising/drafting"))
	}
}

// The mode of a task that holds what does not keep what it has read in mode audit is switched
// when the task has ended.
func TestModeIsLeftWithoutTheTask(t *testing.T) {
	s := newRaising(t)
	s.prepareDrafting("audit", "view inbox view of /inbox/1.txt", "say ready", "number monitor 3", "read monitor")
	_, err := s.monitor.StartTask(t.Context(), "raising", "drafting")
	s.must(err)
	waiting.Until(t, "the task has read", func() bool {
		return strings.Contains(s.printed("raising/drafting"), "ready")
	})
	_, err = s.monitor.SetMode(t.Context(), "raising", "shai")
	const why = "mode audit has let task drafting read what it should not, and it could be written to raising/printed/0"
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%v", err)
	}
	_, err = s.monitor.StopTask(t.Context(), "raising", "drafting")
	s.must(err)
	if _, err = s.monitor.SetMode(t.Context(), "raising", "shai"); err != nil {
		t.Error(err)
	}
}

// An explanation about a task whose program runs is given by the taint that it has then, and says
// so; else by the declared one.
func TestExplanationsOfARaisedTaint(t *testing.T) {
	for mode, reads := range map[string]string{
		"shai": "of the program that runs as personal",
		"dynamic": "declared of personal, as which the program runs; in mode dynamic a read is allowed unless what " +
			"is open for writing does not keep it",
	} {
		s := newRaising(t)
		s.prepareDrafting(mode, "raise personal close", "say ready", "number monitor 3", "read monitor")
		expect := func(access, conduit string, allowed bool, instance, taintOf, taint string) {
			t.Helper()
			question := api.Question{Pipeline: "raising", Task: "drafting", Conduit: conduit, Access: access}
			got, err := s.monitor.Explain(t.Context(), question)
			s.must(err)
			if got.Allowed != allowed || got.Instance != instance || got.TaintOf != taintOf || got.Taint != taint {
				t.Errorf("mode %s, %s: %v by %s, taint %s (%s)", mode, access, got.Allowed, got.Instance, got.Taint,
					got.TaintOf)
			}
		}
		expect("read", "/inbox/1.txt", false, "drafting", "declared", "no obligations")
		_, err := s.monitor.StartTask(t.Context(), "raising", "drafting")
		s.must(err)
		waiting.Until(t, "the task has raised its taint", func() bool {
			return strings.Contains(s.printed("raising/drafting"), "ready")
		})
		const raised = "read of policy of alices"
		expect("read", "/inbox/1.txt", true, "personal", reads, raised)
		expect("write", "/public/notice", false, "personal", "of the program that runs as personal", raised)
		_, err = s.monitor.StopTask(t.Context(), "raising", "drafting")
		s.must(err)
		expect("read", "/inbox/1.txt", false, "drafting", "declared", "no obligations")
	}
}

// BenchmarkRaise measures a raise to an equal taint of a program that holds files open for
// writing, as the program sees it.
func BenchmarkRaise(b *testing.B) {
	for _, held := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			s := newRaising(b)
			lines := strings.Split(s.drafts("shai", "raise personal close", fmt.Sprintf("hold %d /letters/1", held),
				fmt.Sprintf("time %d equal personal", b.N)), "\n")
			var took float64
			if _, err := fmt.Sscanf(lines[2], "%f microseconds", &took); err != nil {
				b.Fatalf("%q: %v", lines, err)
			}
			b.ReportMetric(took, "µs/raise")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// newRaising is a stack with pipeline "raising" and its documents.
func newRaising(t testing.TB) *stack {
	s := newStack(t)
	s.manifests["pipeline.yaml"] = pipelinetest.Raising
	s.document("/inbox/1.txt")
	s.document("/news/1.txt")
	s.options.Define["DATA"] = s.options.Data
	return s
}

// ownNumber is a descriptor that the program has opened: what else it has at such numbers is the
// run-time linker's.
var ownNumber = regexp.MustCompile(`\(descriptor (1[6-9]\d|[2-9]\d\d)\)`)

// playRaising runs a transcript's commands and renders it again with what the program printed.
func playRaising(s *stack, transcript string) string {
	p := &player{stack: s}
	var commands []string
	for line := range strings.Lines(transcript) {
		if line = strings.TrimSuffix(line, "\n"); isDone(line) {
			commands = append(commands, line)
		}
	}
	_, mode, _ := strings.Cut(transcript, "\nmode ")
	mode, _, _ = strings.Cut(mode, "\n")
	printed, records := s.drafts(cmp.Or(mode, "shai"), commands...), ""
	for _, r := range s.records() {
		if r.Kind == audit.Taint || r.Kind == audit.Denial {
			records += p.showRecord(r)
		}
	}
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		answer := ""
		switch {
		case strings.HasPrefix(line, " "):
			continue
		case line == "audit\n":
			answer = records
		case isDone(strings.TrimSuffix(line, "\n")):
			answer, printed, _ = strings.Cut(printed, "\n")
		}
		out.WriteString(line)
		if strings.HasPrefix(line, "native ") {
			answer = differs(answer)
		}
		answer = ownNumber.ReplaceAllString(answer, "(descriptor ~$1)")
		for one := range strings.Lines(answer) {
			fmt.Fprintf(&out, "  %s\n", strings.TrimSuffix(one, "\n"))
		}
	}
	return out.String()
}

// isDone reports whether the program does what a line of a transcript says.
func isDone(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return word != "" && word != "#" && word != "audit" && word != "mode"
}

// prepareDrafting gives task drafting its commands, in a mode.
func (s *stack) prepareDrafting(mode string, commands ...string) {
	s.t.Helper()
	s.open()
	s.apply()
	var quoted []string
	for _, command := range commands {
		if head, name, found := strings.Cut(command, "view of "); found {
			command = head + (&player{stack: s}).viewed("beneath", "view of "+name)
		}
		quoted = append(quoted, strconv.Quote(command))
	}
	s.manifests["pipeline.yaml"] = strings.NewReplacer(", COMMANDS]", ", "+strings.Join(quoted, ", ")+"]",
		"mode: shai", "mode: "+mode).Replace(pipelinetest.Raising)
	s.apply()
	s.records()
}

// drafts runs task drafting with commands, in a mode, and returns what it printed.
func (s *stack) drafts(mode string, commands ...string) string {
	s.t.Helper()
	s.prepareDrafting(mode, commands...)
	other := s.monitor.pipelines["raising"].Task("personal").Status()
	if other.Run != "Raised" || other.State != "Stopped" {
		s.t.Errorf("a task that others become: %+v", other)
	}
	_, err := s.monitor.StartTask(s.t.Context(), "raising", "drafting")
	s.must(err)
	status, err := s.monitor.WaitTask(s.t.Context(), "raising", "drafting")
	s.must(err)
	if status.State != "Succeeded" {
		s.t.Fatalf("the task ended %+v; it printed %q", status, s.printed("raising/drafting"))
	}
	return s.printed("raising/drafting")
}

// printed joins the logs of a task, one for each label, in the order in which they ended.
func (s *stack) printed(task string) (all string) {
	for _, log := range s.logsOf(task) {
		page, err := tasklog.Read(log, "", 1<<20)
		s.must(err)
		all += string(page.Text)
	}
	return all
}

// logsOf returns them in this order: the present label's is last. It and the one before are kept.
// Their times may be equal: most kernels count them in ticks.
func (s *stack) logsOf(task string) []string {
	logs, err := filepath.Glob(filepath.Join(s.options.State, "logs", task, "*.log"))
	s.must(err)
	if len(logs) < 2 {
		return logs
	}
	of, name, _ := strings.Cut(task, "/")
	present, err := s.monitor.pipelines[of].Task(name).ReadLog(pipeline.Reader{}, pipeline.Excerpt{Limit: 1 << 20})
	s.must(err)
	if page, err := tasklog.Read(logs[0], "", 1<<20); err != nil || string(page.Text) == string(present.Text) {
		s.must(err)
		slices.Reverse(logs)
	}
	return logs
}
