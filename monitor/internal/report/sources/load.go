// SPDX-License-Identifier: BSD-2-Clause

package sources

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Load is the result.json of a scenario of load.
type Load struct {
	Scenario    string           `json:"scenario"`
	Description string           `json:"description"`
	Host        string           `json:"host"`
	Pipeline    string           `json:"pipeline"`
	Users       int64            `json:"users"` // the greatest number at the same time
	Seconds     float64          `json:"seconds"`
	Workers     int64            `json:"workers"`
	Seed        int64            `json:"seed"`
	Complete    bool             `json:"complete"` // it ran to its end, and has lost no process
	Parts       []Part           `json:"parts"`    // the phases, and the whole run as the last one
	Errors      map[string]int64 `json:"errors"`
	Thresholds  []Judgement      `json:"thresholds"`
	Text        []byte           `json:"-"`
}

// Part is a phase of a scenario, or the whole run, whose phase is empty. What was not measured is nil.
type Part struct {
	Phase             string   `json:"phase"`
	Seconds           *float64 `json:"seconds"`
	Queries           *float64 `json:"queries"`
	QueriesPerSecond  *float64 `json:"queries_per_second"`
	SessionsPerSecond *float64 `json:"sessions_per_second"`
	P50               *float64 `json:"p50"` // in seconds
	P90               *float64 `json:"p90"`
	P99               *float64 `json:"p99"`
	Failures          *float64 `json:"failures"`
	Shown             *float64 `json:"shown"` // documents
	Withheld          *float64 `json:"withheld"`
	Checked           *float64 `json:"checked"` // searches that could have been violations
	Violations        *float64 `json:"violations"`
}

// Judgement is what a threshold says of a run.
type Judgement struct {
	Threshold string `json:"threshold"`
	Exceeded  bool   `json:"exceeded"`
	Message   string `json:"message"` // with the figures
}

// Whole returns the part that is the whole run.
func (l Load) Whole() Part { return l.Parts[len(l.Parts)-1] }

func (a *All) addLoad(text []byte) error {
	load := Load{Text: text}
	if err := json.Unmarshal(text, &load); err != nil {
		return fmt.Errorf("result.json: %w", err)
	}
	if len(load.Parts) == 0 || load.Whole().Phase != "" {
		return errors.New("result.json: its last part is not the whole run; run the scenario again")
	}
	a.Loads = append(a.Loads, load)
	return nil
}
