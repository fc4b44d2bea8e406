// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
	"shai.dev/monitor/internal/top"
)

func sampleAt(t *testing.T, seconds int, status api.Status, metrics string) top.Sample {
	t.Helper()
	made, err := top.NewSample(apitest.Began.Add(time.Duration(seconds)*time.Second), status, []byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// screen returns a screen that has seen two samples, of a pipeline, task and user with
// these names.
func screen(t *testing.T, name string) *topScreen {
	t.Helper()
	status := api.Status{Version: "test", Ready: true, Pipelines: []api.PipelineStatus{{
		Name: name, Mode: "shai", SessionTotal: 1,
		Tasks:    []api.TaskStatus{{Name: name, State: "Running", Enforcement: "full"}},
		Sessions: []api.SessionStatus{{Principal: name, Task: name, Mode: "shai", Region: name, Since: apitest.Began}},
	}}}
	s := &topScreen{interval: time.Hour, last: sampleAt(t, 0, status, ""), following: true, width: 80}
	label := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(name)
	s.Update(sampled{sampleAt(t, 1, status,
		"# TYPE shai_native_opens_total counter\nshai_native_opens_total{pipeline=\""+label+"\"} 1234\n")})
	denial := audit.Event{Instance: name, Operation: "open", Conduit: name, Reason: name}
	s.Update(deniedNow(audit.Record{Event: denial}))
	return s
}

func TestTopFitsEightyColumns(t *testing.T) {
	long, wide := strings.Repeat("n", 64<<10), strings.Repeat("犬", 25)
	for _, name := range []string{"syse", long, wide, "a\nb\x1b[2J\u202e"} {
		shown := ansi.Strip(screen(t, name).View().Content)
		for line := range strings.Lines(shown) {
			line = strings.TrimSuffix(line, "\n")
			if width := ansi.StringWidth(line); width > 80 {
				t.Errorf("%.10q: %d cells: %q", name, width, line)
			}
			if strings.ContainsAny(line, "\x1b\u202e") {
				t.Errorf("%.10q: a name controls the terminal: %q", name, line)
			}
		}
		if !strings.Contains(shown, "1 234") {
			t.Errorf("%.10q: the opens are not shown:\n%s", name, shown)
		}
	}
}

func TestTopFitsTheWindow(t *testing.T) {
	s := screen(t, "syse")
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 10})
	s.Update(failed{errors.New("the monitor went away")})
	shown := strings.Split(ansi.Strip(s.View().Content), "\n")
	last := strings.Join(shown[len(shown)-2:], "; ")
	if len(shown) > 10 || !strings.HasPrefix(last, "the monitor went away; q ends, space pauses, arrows move; ") ||
		!strings.HasSuffix(last, " below") {
		t.Errorf("%d lines:\n%s", len(shown), strings.Join(shown, "\n"))
	}
	s.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
	shown = strings.Split(ansi.Strip(s.View().Content), "\n")
	if foot := shown[len(shown)-1]; ansi.StringWidth(foot) > 40 {
		t.Errorf("the foot is cut by nobody: %q", foot)
	}
}

// However low the window and however many pipelines, all lines can be reached.
func TestTopMoves(t *testing.T) {
	s := screen(t, "syse")
	for i := range 500 {
		s.view.Pipelines = append(s.view.Pipelines, top.Pipeline{Name: fmt.Sprintf("pipeline-%d", i)})
	}
	s.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	all := strings.Split(strings.TrimSpace(ansi.Strip(renderTop(*s.view, s.denied, 80))), "\n")
	shown := func() []string {
		lines := strings.Split(ansi.Strip(s.View().Content), "\n")
		if len(lines) != 23 {
			t.Fatalf("%d lines", len(lines))
		}
		return lines
	}
	for _, step := range []struct {
		key  rune
		want int // lines above
	}{{tea.KeyUp, 0}, {tea.KeyDown, 1}, {tea.KeyPgDown, 23}, {tea.KeyPgDown, 45}, {tea.KeyUp, 44}, {tea.KeyPgUp, 22},
		{tea.KeyEnd, len(all) - 22}, {tea.KeyDown, len(all) - 22}, {tea.KeyHome, 0}, {tea.KeyEnd, len(all) - 22}} {
		s.Update(tea.KeyPressMsg{Code: step.key})
		lines := shown()
		foot := fmt.Sprintf("%s above, %d below", counted(step.want, "line"), len(all)-22-step.want)
		if lines[0] != all[step.want] || !strings.HasSuffix(lines[22], foot) {
			t.Errorf("after %c: %q … %q, want %q … %q", step.key, lines[0], lines[22], all[step.want], foot)
		}
	}
	if lines := shown(); !strings.Contains(lines[20]+lines[21], "syse open syse: syse") {
		t.Errorf("the last denial is not at the end:\n%s", strings.Join(lines, "\n"))
	}
	s.view.Pipelines = nil // what is shown has become short
	if lines := strings.Split(ansi.Strip(s.View().Content), "\n"); !strings.HasPrefix(lines[0], "monitor test") {
		t.Errorf("nothing is shown:\n%s", strings.Join(lines, "\n"))
	}
}

// However many sessions and denials there are, the last denials are below the first of them.
func TestTopOfManySessions(t *testing.T) {
	v := top.View{Pipelines: []top.Pipeline{{Name: "syse", Sessions: 2345}}}
	for i := range 100 {
		v.Sessions = append(v.Sessions, api.SessionStatus{Principal: fmt.Sprintf("user%d", i), Since: apitest.Began})
		v.Denials = append(v.Denials, top.Denial{Pipeline: "syse", Reason: fmt.Sprint(i), Count: 1})
	}
	shown := ansi.Strip(renderTop(v, []audit.Record{{Event: audit.Event{Conduit: "/last"}}}, 80))
	for _, want := range []string{"user9 ", "… and 2 335 more", "… and 90 more", "/last"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	if lines := strings.Count(shown, "\n"); lines > 50 || strings.Contains(shown, "user10 ") {
		t.Errorf("%d lines:\n%s", lines, shown)
	}
}

func TestTopPauses(t *testing.T) {
	s := screen(t, "syse")
	before := s.View().Content
	s.Update(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
	s.Update(sampled{sampleAt(t, 2, api.Status{Version: "other"}, "")})
	after := s.View().Content
	if strings.Contains(after, "other") || !strings.Contains(after, "paused") || before == after {
		t.Errorf("paused:\n%s", ansi.Strip(after))
	}
	s.Update(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
	s.Update(sampled{sampleAt(t, 3, api.Status{Version: "other"}, "")})
	if !strings.Contains(s.View().Content, "other") {
		t.Error("it does not go on")
	}
}

// After the monitor was away, the screen follows its denials again.
func TestTopFollowsAgain(t *testing.T) {
	s := screen(t, "syse")
	s.Update(unfollowed{})
	if strings.Contains(s.View().Content, "LAST DENIALS") {
		t.Error("it shows denials that may be out of date")
	}
	if s.Update(sampled{sampleAt(t, 2, api.Status{}, "")}); !s.following {
		t.Error("it does not follow")
	}
}
