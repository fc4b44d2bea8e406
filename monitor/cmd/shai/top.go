// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/top"
)

// deniedShown is how many of the last denials shai top shows.
const deniedShown = 8

func (p *program) topCommand() *cobra.Command {
	var interval time.Duration
	var once bool
	command := &cobra.Command{
		Use: "top", Short: "Watch tasks, sessions, opens, denials and CPU time live",
		Long: `Show what the monitor does now: pipelines and tasks, sessions, opens of documents by who
answered them, what is denied, and the CPU time that enforcement takes. Rates are those
of the last interval. It needs 80 columns, and a terminal unless --once is given.

  q  end    space  pause and go on    up, down, page up, page down, home, end  move`,
		Example: "  shai top\n  shai top --once --output json",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if interval < 100*time.Millisecond || interval > time.Hour {
				return fmt.Errorf("--interval %v is not between 100ms and 1h", interval)
			}
			if !once && p.output != "text" {
				return fmt.Errorf("--output %s needs --once, which prints one interval and ends", p.output)
			}
			return nil
		},
		RunE: p.does(func(ctx context.Context, _ []string) error {
			client, err := p.client()
			if err != nil {
				return err
			}
			if once {
				return p.topOnce(ctx, client, interval)
			}
			return p.topLive(ctx, client, interval)
		}),
	}
	command.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two looks at the monitor")
	command.Flags().BoolVar(&once, "once", false, "print what happened within one interval, and end")
	return command
}

// look asks the monitor for a sample.
func look(ctx context.Context, client *api.Client) (top.Sample, error) {
	status, err := client.Status(ctx)
	if err != nil {
		return top.Sample{}, err
	}
	metrics, err := client.Metrics(ctx)
	if err != nil {
		return top.Sample{}, err
	}
	return top.NewSample(time.Now(), status, metrics)
}

func (p *program) topOnce(ctx context.Context, client *api.Client, interval time.Duration) error {
	before, err := look(ctx, client)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(interval):
	}
	after, err := look(ctx, client)
	if err != nil {
		return err
	}
	var denied []audit.Record
	query := audit.Query{Kinds: []audit.Kind{audit.Denial}, Limit: deniedShown}
	err = client.Query(ctx, query, func(r audit.Record) error { denied = append(denied, r); return nil })
	if err != nil {
		return err
	}
	view := top.Compare(before, after)
	return p.print(view, func(w io.Writer) {
		for line := range strings.Lines(ansi.Strip(renderTop(view, denied, narrowest))) {
			fmt.Fprintln(w, strings.TrimRight(line, " \n"))
		}
	})
}

func (p *program) topLive(ctx context.Context, client *api.Client, interval time.Duration) error {
	terminal, ok := p.stdout.(*os.File)
	if !ok || !term.IsTerminal(terminal.Fd()) {
		return errors.New("standard output is not a terminal; print one interval with --once")
	}
	first, err := look(ctx, client) // errors are printed before the screen is taken
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	screen := &topScreen{ctx: ctx, client: client, interval: interval, last: first, width: narrowest}
	running := tea.NewProgram(screen, tea.WithContext(ctx), tea.WithInput(p.stdin), tea.WithOutput(p.stdout))
	screen.send = running.Send
	_, err = running.Run()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		return nil // a signal is a way to end it
	}
	return err
}

// Messages of the screen: a sample, why there is none, a denial, the end of following
// them, the time to look again.
type (
	sampled    struct{ top.Sample }
	failed     struct{ error }
	deniedNow  audit.Record
	unfollowed struct{}
	due        struct{}
)

// topScreen is the model of the live screen. The program that runs it calls its methods
// one after the other.
type topScreen struct {
	ctx      context.Context
	client   *api.Client
	interval time.Duration
	send     func(tea.Msg)

	last      top.Sample
	view      *top.View // nil before the second sample
	denied    []audit.Record
	following bool  // denials
	err       error // of the last look
	paused    bool
	width     int
	height    int
	above     int // lines that were moved out of the window
}

// Init implements [tea.Model].
func (s *topScreen) Init() tea.Cmd {
	s.following = true
	return tea.Batch(s.follow, s.wait())
}

// Update implements [tea.Model].
func (s *topScreen) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = message.Width, message.Height
	case tea.KeyPressMsg:
		switch message.String() {
		case "q", "ctrl+c", "esc":
			return s, tea.Quit
		case "space":
			s.paused = !s.paused
		default:
			s.move(message.String())
		}
	case due:
		return s, s.look
	case sampled:
		if !s.paused {
			view := top.Compare(s.last, message.Sample)
			s.view = &view
		}
		s.last, s.err = message.Sample, nil
		if !s.following { // the monitor was away, and answers again
			return s, s.Init()
		}
		return s, s.wait()
	case failed:
		s.err = message.error
		return s, s.wait()
	case deniedNow:
		s.denied = append(s.denied, audit.Record(message))
		s.denied = s.denied[max(0, len(s.denied)-deniedShown):]
	case unfollowed:
		s.following, s.denied = false, nil
	}
	return s, nil
}

func (s *topScreen) wait() tea.Cmd {
	return tea.Tick(s.interval, func(time.Time) tea.Msg { return due{} })
}

func (s *topScreen) look() tea.Msg {
	sample, err := look(s.ctx, s.client)
	if err != nil {
		return failed{err}
	}
	return sampled{sample}
}

// follow passes on denials until the monitor ends or the screen does. Why it could not is
// what the next look says, too.
func (s *topScreen) follow() tea.Msg {
	query := audit.Query{Kinds: []audit.Kind{audit.Denial}, Limit: deniedShown, Follow: true}
	_ = s.client.Query(s.ctx, query, func(r audit.Record) error { s.send(deniedNow(r)); return nil })
	return unfollowed{}
}

// move moves the window over the lines by a key.
func (s *topScreen) move(key string) {
	all := len(s.lines())
	by, ok := map[string]int{
		"up": -1, "down": 1, "pgup": -s.room(), "pgdown": s.room(), "home": -all, "end": all,
	}[key]
	if ok {
		s.above = s.within(s.above+by, all)
	}
}

// lines are those of the last view, whether there is room for them or not.
func (s *topScreen) lines() []string {
	text := "looking at the monitor …"
	if s.view != nil {
		text = renderTop(*s.view, s.denied, s.width)
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// room is the number of lines above an error and the foot.
func (s *topScreen) room() int { return max(s.height-2, 1) }

// within returns the nearest number of lines above the window by which nothing of it is empty.
func (s *topScreen) within(above, all int) int { return max(0, min(above, all-s.room())) }

// View implements [tea.Model].
func (s *topScreen) View() tea.View {
	foot := "q ends, space pauses"
	if s.paused {
		foot = "paused: space goes on, q ends"
	}
	lines := s.lines()
	if s.height > 0 && len(lines) > s.room() {
		above := s.within(s.above, len(lines))
		foot += fmt.Sprintf(", arrows move; %s above, %d below", counted(above, "line"), len(lines)-s.room()-above)
		lines = lines[above : above+s.room()]
	}
	if s.err != nil {
		lines = append(lines, cut(printable(s.err.Error()), s.width))
	}
	view := tea.NewView(strings.Join(append(lines, faint.Render(cut(foot, s.width))), "\n"))
	view.AltScreen = true
	return view
}
