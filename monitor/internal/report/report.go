// SPDX-License-Identifier: BSD-2-Clause

// Package report makes one report of everything that was measured: what enforcement
// costs, what it stops, and what the papers say beside it.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"shai.dev/monitor/internal/report/boards"
	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// Input is what a report is made of.
type Input struct {
	Title   string
	Given   sources.All
	Range   *boards.Range // nil: no Prometheus was asked
	Made    time.Time
	Version string
}

// Compose makes the report.
func Compose(in Input) figure.Report {
	in.Given = qualified(in.Given)
	in.Given.Results = bestFirst(in.Given.Results)
	report := figure.Report{
		Title:    in.Title,
		Subtitle: subtitle(in),
		Made:     in.Made,
		Version:  in.Version,
	}
	for _, results := range in.Given.Results {
		report.Sections = append(report.Sections, costs(results, len(in.Given.Results) > 1))
	}
	for _, add := range []func(Input) (figure.Section, *figure.Absent){
		scenarios, session, stopped, papers, latency, growth, flow, overTime, method,
	} {
		section, absent := add(in)
		if absent != nil {
			report.Absent = append(report.Absent, *absent)
		}
		if len(section.Figures) > 0 {
			report.Sections = append(report.Sections, section)
		}
	}
	if len(in.Given.Results) == 0 {
		report.Absent = append([]figure.Absent{{
			What:   "What each mode costs",
			Remedy: "give results.json of make demo, or a Benchmark's ConfigMap: kubectl get configmaps -o json | shai report -",
		}}, report.Absent...)
	}
	report.Highlights = highlights(in)
	report.Downloads = downloads(in.Given)
	identify(report.Sections)
	return report
}

// identify gives sections and figures with the same identifier, as of a file that was given
// twice, different ones.
func identify(sections []figure.Section) {
	taken := map[string]bool{}
	take := func(id *string) {
		free := *id
		for n := 2; taken[free]; n++ {
			free = fmt.Sprintf("%s-%d", *id, n)
		}
		taken[free], *id = true, free
	}
	for i := range sections {
		take(&sections[i].ID)
		for j := range sections[i].Figures {
			take(&sections[i].Figures[j].ID)
		}
	}
}

// bestFirst orders results: those of a search first, and of them those of the most rounds.
func bestFirst(results []sources.Results) []sources.Results {
	stands := func(r sources.Results) int {
		if r.Size.BusyCycles != nil {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(results), func(a, b sources.Results) int {
		return cmp.Or(cmp.Compare(stands(a), stands(b)), cmp.Compare(b.Size.Rounds, a.Size.Rounds))
	})
}

// main returns the results that the head of the report is about.
func main(given sources.All) *sources.Results {
	if len(given.Results) == 0 {
		return nil
	}
	return &given.Results[0]
}

func subtitle(in Input) string {
	var parts []string
	if results := main(in.Given); results != nil {
		parts = append(parts, sizeOf(results.Size), machineOf(results.Machine))
	} else if len(in.Given.Sessions) > 0 {
		parts = append(parts, machineOf(in.Given.Sessions[0].Machine))
	} else if len(in.Given.Loads) > 0 {
		parts = append(parts, "scenario "+in.Given.Loads[0].Scenario)
	}
	if in.Range != nil {
		parts = append(parts, fmt.Sprintf("Prometheus from %s to %s", in.Range.From.UTC().Format(instant),
			in.Range.To.UTC().Format(instant)))
	}
	return strings.Join(parts, "; ")
}

const instant = "2006-01-02 15:04:05 MST"

func sizeOf(size sources.Size) string {
	var parts []string
	if size.Documents > 0 {
		parts = append(parts, figure.Digits(float64(size.Documents))+" documents")
	}
	if size.Users > 0 {
		parts = append(parts, figure.Digits(float64(size.Users))+" users")
	}
	if busy := size.BusyCycles; busy != nil && *busy == 0 {
		parts = append(parts, "an engine that picks at random")
	} else if busy != nil {
		parts = append(parts, fmt.Sprintf("an engine that picks at random, after %s cycles", figure.Digits(float64(*busy))))
	}
	rounds := "1 round"
	if size.Rounds != 1 {
		rounds = fmt.Sprintf("%d rounds", size.Rounds)
	}
	return strings.Join(append(parts, rounds), ", ")
}

func machineOf(machine sources.Machine) string {
	return fmt.Sprintf("%s, %d cores, %s", machine.Processor, machine.Cores, machine.System)
}

// lengthOf names a session length.
func lengthOf(length int) string {
	if length == 0 {
		return "whole run"
	}
	return figure.Digits(float64(length))
}

// slug makes an identifier of a page from a name of any characters.
func slug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
}
