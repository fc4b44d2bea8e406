// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	tables "charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/top"
)

// narrowest is the width below which lines are cut.
const narrowest = 80

var (
	strong = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
)

// renderTop returns the screen of shai top, in lines of at most width cells. Names come
// from users, and are made printable here.
func renderTop(v top.View, denied []audit.Record, width int) string {
	width = max(width, narrowest)
	parts := []string{
		strong.Render(cut(fmt.Sprintf("monitor %s, %s, enforcement %s", v.Version, readiness(v), v.Enforcement), width)),
		cut(cpuLine(v), width),
		"",
		grid(width, []string{"PIPELINE", "MODE", "SESSIONS", "ENDED/S", "ANALYSED", "GRANTED"}, pipelineRows(v)),
		grid(width, []string{"OPENS/S OF", "NATIVE", "SUPERVISOR", "MONITOR", "DENIED/S", "WOULD/S"}, openRows(v)),
		grid(width, []string{"TASK", "STATE", "ENFORCED", "CPU", "SUPERVISOR", "WORKERS", "RESTARTS"}, taskRows(v)),
	}
	if len(v.Denials) > 0 {
		headers := []string{"DENIED", "TASK", "POLICY", "REASON"}
		parts = append(parts, firsts(width, headers, denialRows(v), len(v.Denials)))
	}
	if len(v.Sessions) > 0 {
		headers := []string{"SESSION", "TASK", "MODE", "FROM", "FOR"}
		parts = append(parts, firsts(width, headers, sessionRows(v), live(v)))
	}
	if len(denied) > 0 {
		parts = append(parts, lastDenials(denied, width))
	}
	return strings.Join(parts, "\n")
}

// rowsShown is the number of rows of a table that grows with users: what is below it has to be
// on the screen, too.
const rowsShown = 10

// firsts renders the first rows, and says how many of all there are besides.
func firsts(width int, headers []string, rows [][]string, all int) string {
	shown := rows[:min(len(rows), rowsShown)]
	text := grid(width, headers, shown)
	if more := all - len(shown); more > 0 {
		text += faint.Render(fmt.Sprintf("… and %s more", grouped(more))) + "\n"
	}
	return text
}

// live is the number of sessions now, of which a view lists some.
func live(v top.View) int {
	count := 0
	for _, pipeline := range v.Pipelines {
		count += pipeline.Sessions
	}
	return count
}

func readiness(v top.View) string {
	if v.Ready {
		return "ready"
	}
	return "not ready: " + printable(v.Reason)
}

func cpuLine(v top.View) string {
	var tasks, supervisors float64
	for _, pipeline := range v.Pipelines {
		for _, task := range pipeline.Tasks {
			tasks += task.CPU
			supervisors += task.SupervisorCPU
		}
	}
	text := fmt.Sprintf("CPU in cores: tasks %s, supervisors %s, monitor %s", cores(tasks), cores(supervisors),
		cores(v.MonitorCPU))
	if v.EnforcementMicrosecondsPerSession != nil {
		text += fmt.Sprintf("; the last two: %.0f µs per session", *v.EnforcementMicrosecondsPerSession)
	}
	return text
}

func pipelineRows(v top.View) [][]string {
	rows := [][]string{}
	for _, p := range v.Pipelines {
		analysed, granted := "never", "-"
		if p.AnalysisAgeSeconds != nil {
			analysed = age(time.Duration(*p.AnalysisAgeSeconds*1e9)) + " ago"
		}
		if p.Coverage != nil {
			granted = fmt.Sprintf("%.1f %%", *p.Coverage*100)
		}
		rows = append(rows, []string{p.Name, p.Mode, strconv.Itoa(p.Sessions), rate(p.SessionsPerSecond),
			analysed, granted})
	}
	return rows
}

func openRows(v top.View) [][]string {
	rows := [][]string{}
	for _, p := range v.Pipelines {
		rows = append(rows, []string{p.Name, rate(p.Opens.Native), rate(p.Opens.Supervisor), rate(p.Opens.Monitor),
			rate(p.Denials), rate(p.WouldDeny)})
	}
	return rows
}

func taskRows(v top.View) [][]string {
	rows := [][]string{}
	for _, p := range v.Pipelines {
		for _, t := range p.Tasks {
			rows = append(rows, []string{p.Name + "/" + t.Name, t.State, either(t.Enforcement, "-"), cores(t.CPU),
				cores(t.SupervisorCPU), strconv.Itoa(t.Workers), strconv.Itoa(t.Restarts)})
		}
	}
	return rows
}

func denialRows(v top.View) [][]string {
	rows := [][]string{}
	for _, d := range v.Denials {
		rows = append(rows, []string{grouped(uint64(d.Count)), d.Pipeline + "/" + d.Task, either(d.Policy, "-"),
			d.Reason})
	}
	return rows
}

func sessionRows(v top.View) [][]string {
	rows := [][]string{}
	for _, s := range v.Sessions {
		rows = append(rows, []string{either(s.Principal, "(not logged in)"), s.Task, s.Mode, either(s.Region, "-"),
			age(v.Time.Sub(s.Since))})
	}
	return rows
}

// lastDenials lists records of the audit log, the latest first.
func lastDenials(denied []audit.Record, width int) string {
	lines := []string{strong.Render("LAST DENIALS")}
	for i := len(denied) - 1; i >= 0; i-- {
		r := denied[i]
		who := either(r.Instance, either(r.Principal, r.Task))
		text := fmt.Sprintf("%s %s %s %s: %s", r.Time.Local().Format(time.TimeOnly), who, r.Operation, r.Conduit, r.Reason)
		lines = append(lines, cut(printable(text), width))
	}
	return strings.Join(lines, "\n") + "\n"
}

// grid renders rows beneath headers. The first column takes the room that the others
// leave.
func grid(width int, headers []string, rows [][]string) string {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
	}
	rest := 0
	for column := 1; column < len(headers); column++ {
		widest := len(headers[column])
		for _, row := range rows {
			widest = max(widest, min(ansi.StringWidth(row[column]), width/4))
		}
		rest += widest + 2
	}
	first := max(width-rest, 12)
	for _, row := range rows {
		row[0] = cut(row[0], first)
		for column := 1; column < len(row); column++ {
			row[column] = cut(row[column], max(width/4, len(headers[column])))
		}
	}
	return tables.New().Headers(headers...).Rows(rows...).Wrap(false).
		Border(lipgloss.HiddenBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		BorderColumn(false).BorderHeader(false).
		StyleFunc(func(row, column int) lipgloss.Style {
			style := lipgloss.NewStyle()
			if row == tables.HeaderRow {
				style = strong
			}
			if column < len(headers)-1 {
				style = style.PaddingRight(2)
			}
			return style
		}).String() + "\n"
}

func cut(text string, width int) string { return ansi.Truncate(text, width, "…") }

// rate writes a number of events per second with as many digits as say something.
func rate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 10:
		return fmt.Sprintf("%.1f", perSecond)
	}
	return grouped(uint64(perSecond + 0.5))
}

func cores(cpu float64) string { return fmt.Sprintf("%.2f", cpu) }

// age writes a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", max(0, d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
