// SPDX-License-Identifier: BSD-2-Clause

package main

import "encoding/json"

// members are what a status has beneath this name: of a JailPool its members, of a Pipeline their
// number, of an AnalysisRun their results.
type members struct {
	Count int
	Rows  []member
}

// member is one member of a pool.
type member struct {
	Name     string `json:"name"`
	Host     string `json:"host,omitempty"`
	Ready    string `json:"ready,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Release  string `json:"release,omitempty"`
	Sessions int    `json:"sessions"`
}

// UnmarshalJSON reads either form.
func (m *members) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &m.Count) == nil {
		return nil
	}
	return json.Unmarshal(text, &m.Rows)
}
