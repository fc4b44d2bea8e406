// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"cmp"
	"fmt"
	"slices"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// latency shows how long queries take.
func latency(in Input) (figure.Section, *figure.Absent) {
	section := figure.Section{
		ID: "latency", Title: "How long a query takes",
		Text: "From the request to the whole answer, as users see it, while many of them search at the same time.",
	}
	for _, results := range in.Given.Results {
		prefix := "latency"
		if len(in.Given.Results) > 1 {
			prefix += "-" + slug(results.Name)
		}
		section.Figures = append(section.Figures, percentiles(prefix, results, "p50", "Median"),
			percentiles(prefix, results, "p99", "99th percentile"))
		section.Figures = append(section.Figures, distributions(prefix, results.Latency)...)
	}
	section.Figures = append(section.Figures, distributions("latency-range", rangeLatency(in.Range))...)
	distributed := slices.ContainsFunc(section.Figures, func(f figure.Figure) bool { return f.Kind == figure.Steps })
	if !distributed {
		return section, &figure.Absent{What: "Distributions of latencies",
			Remedy: "give results with the key latency, or --prometheus with a range in which a load generator was scraped"}
	}
	return section, nil
}

func percentiles(prefix string, results sources.Results, name, title string) figure.Figure {
	f := figure.Figure{
		ID: prefix + "-" + name, Title: title + " of a query's latency",
		Caption: "By session length, the median of the slices.",
		Kind:    figure.Bars, X: figure.Axis{Label: "queries per session"},
		Y: figure.Axis{Label: "latency", Unit: "ms"},
	}
	f.Columns, f.Rows = byLength(results, func(m sources.Mode) figure.Cell {
		if found, measured := m.LatencyMilliseconds[name]; measured {
			return estimated(found)
		}
		return figure.None()
	})
	return f
}

// distributions shows a cumulative distribution of each mode for each session length.
func distributions(prefix string, measured []sources.Latency) []figure.Figure {
	var lengths []int
	by := map[int]map[string]sources.Latency{}
	for _, one := range measured {
		if by[one.SessionLength] == nil {
			by[one.SessionLength] = map[string]sources.Latency{}
			lengths = append(lengths, one.SessionLength)
		}
		by[one.SessionLength][one.Mode] = one
	}
	var figures []figure.Figure
	for _, length := range lengths {
		figures = append(figures, distribution(prefix, length, by[length]))
	}
	return figures
}

// anyLength stands for sessions of all lengths.
const anyLength = -1

func distribution(prefix string, length int, modes map[string]sources.Latency) figure.Figure {
	title := "Distribution of latencies"
	if length != anyLength {
		title += fmt.Sprintf(", queries per session: %s", lengthOf(length))
	}
	f := figure.Figure{
		ID: fmt.Sprintf("%s-distribution-%d", prefix, length+1), Title: title,
		Caption: "The share of queries that were answered within a time: a curve further left is faster. From a histogram, " +
			"so times are known up to its bounds.",
		Kind: figure.Steps, X: figure.Axis{Label: "within", Unit: "ms", Log: true},
		Y: figure.Axis{Label: "share of queries", Unit: "%"},
	}
	names := largestCurves(sources.InOrder(modes), modes, &f.Notes)
	var bounds []float64
	for _, name := range names {
		bounds = append(bounds, modes[name].Bounds...)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	f.Columns = columnsOf(names)
	for _, bound := range bounds {
		row := figure.Row{Name: figure.Digits(bound)}
		seen := false
		for _, name := range names {
			share, known := within(modes[name], bound)
			if !known {
				row.Cells = append(row.Cells, figure.None())
				continue
			}
			seen = seen || share >= visibleShare
			row.Cells = append(row.Cells, figure.Number(share*100))
		}
		if seen && bound > 0 {
			f.Rows = append(f.Rows, row)
		}
	}
	f.Rows = untilAll(f.Rows)
	return f
}

// largestCurves returns the modes that a chart has room for, in order: those with most queries.
func largestCurves(names []string, modes map[string]sources.Latency, notes *[]string) []string {
	if len(names) <= drawn {
		return names
	}
	totals := map[string]float64{}
	for _, name := range names {
		for _, count := range modes[name].Counts {
			totals[name] += float64(count)
		}
	}
	order := slices.SortedStableFunc(slices.Values(names), func(a, b string) int {
		return cmp.Compare(totals[b], totals[a])
	})[:drawn]
	*notes = append(*notes, fmt.Sprintf("The %d largest of %d curves.", drawn, len(names)))
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(order, name) })
}

// visibleShare is the least share that a curve can show.
const visibleShare = 0.0005

// within returns the share of latencies up to a bound; false if the histogram does not
// have this bound.
func within(latency sources.Latency, bound float64) (float64, bool) {
	at, found := slices.BinarySearch(latency.Bounds, bound)
	if !found {
		return 0, false
	}
	below, total := int64(0), int64(0)
	for i, count := range latency.Counts {
		total += count
		if i <= at {
			below += count
		}
	}
	return float64(below) / float64(max(total, 1)), true
}

// untilAll leaves out the rows after the first one in which everything is included.
func untilAll(rows []figure.Row) []figure.Row {
	all := slices.IndexFunc(rows, func(row figure.Row) bool {
		return !slices.ContainsFunc(row.Cells, func(c figure.Cell) bool { return c.Value == nil || *c.Value < 100 })
	})
	if all < 0 {
		return rows
	}
	return rows[:all+1]
}
