// SPDX-License-Identifier: BSD-2-Clause

package report

import (
	"fmt"

	"shai.dev/monitor/internal/report/figure"
	"shai.dev/monitor/internal/report/sources"
)

// highlights are the facts for the first minute: what it costs, and what it stops.
func highlights(in Input) []figure.Highlight {
	var found []figure.Highlight
	results := main(in.Given)
	switch {
	case len(in.Given.Sessions) > 0: // more precise: nothing but sessions and queries is measured
		found = append(found, sessionHighlights(in.Given.Sessions[0])...)
	case results != nil:
		found = append(found, addedHighlights(*results)...)
	case len(in.Given.Loads) > 0:
		found = append(found, loadHighlights(in.Given.Loads[0])...)
	}
	if results != nil {
		found = append(found, throughputHighlight(*results)...)
	}
	if v := in.Given.Verification; v != nil && v.Leak.Baseline.Leaked && !v.Leak.Shai.Leaked {
		found = append(found, figure.Highlight{Value: "1 leak stopped", Good: true,
			Label:  "tried with a broken search engine",
			Remark: "without enforcement it leaked; policy " + policyName(v.Leak.Audit.Policy) + " forbids it"})
	}
	refused, undecided := int64(0), int64(0)
	for _, status := range newestAnalyses(in.Given.Analyses) {
		refused, undecided = refused+status.Refused, undecided+status.Undecided
	}
	if refused > 0 {
		found = append(found, figure.Highlight{Value: figure.Digits(float64(refused)), Good: true,
			Label:  "accesses forbidden ahead of time",
			Remark: figure.Digits(float64(undecided)) + " are left to the monitor"})
	}
	if in.Range != nil {
		found = append(found, rangeHighlights(*in.Range)...)
	} else if in.Given.Recorded {
		total := 0.0
		for _, record := range in.Given.Denials {
			total += times(record)
		}
		found = append(found, figure.Highlight{Value: figure.Digits(total), Good: total > 0,
			Label: "accesses refused", Remark: "in the audit log that was given"})
	}
	return found
}

// headline is the mode that the head of the report is about.
const headline = "shai"

func addedHighlights(results sources.Results) []figure.Highlight {
	var found []figure.Highlight
	if cost, measured := results.AddedPerSession[headline]; measured {
		found = append(found, highlight(cost, "µs", "CPU time that mode shai adds to a session"))
	}
	last := results.Throughput[len(results.Throughput)-1]
	mode := last.Modes[headline]
	if mode.AddedCPUMicrosPerItem != nil {
		found = append(found, highlight(*mode.AddedCPUMicrosPerItem, "µs", "CPU time that mode shai adds to a query"))
	}
	return found
}

func throughputHighlight(results sources.Results) []figure.Highlight {
	last := results.Throughput[len(results.Throughput)-1]
	mode := last.Modes[headline]
	if mode.Overhead == nil {
		return nil
	}
	label := "throughput lost in sessions of " + queries(last.SessionLength)
	if last.SessionLength == 0 {
		label = "throughput lost when sessions last the whole run"
	}
	return []figure.Highlight{highlight(percent(*mode.Overhead), "%", label)}
}

func highlight(e sources.Estimate, unit, label string) figure.Highlight {
	remark := ""
	if e.Low != nil {
		remark = fmt.Sprintf("between %s and %s %s", figure.Digits(*e.Low), figure.Digits(*e.High), unit)
	} else {
		remark = "one round: do not rely on it"
	}
	value := figure.Digits(e.Value) + " " + unit
	switch doubt := caveat(e); {
	case e.Low != nil && *e.Low <= 0 && *e.High >= 0:
		value = belowNoise
	case doubt != "":
		remark += "; " + doubt
	}
	return figure.Highlight{Value: value, Label: label, Remark: remark}
}

func sessionHighlights(measured sources.Sessions) []figure.Highlight {
	var found []figure.Highlight
	for _, line := range []struct {
		value *sources.Estimate
		label string
	}{
		{measured.AddedSession, "CPU time that mode shai adds to a session"}, {measured.AddedQuery, "CPU time that mode shai adds to a query"},
	} {
		if line.value != nil {
			one := highlight(*line.value, "µs", line.label)
			one.Remark += "; by make bench-session"
			found = append(found, one)
		}
	}
	return found
}
