// SPDX-License-Identifier: BSD-2-Clause

package sources

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// format is the version of results.json.
const format = 4

func (a *All) addResults(name, namespace string, text []byte) error {
	results := Results{Name: name, Namespace: namespace, Text: text}
	if err := json.Unmarshal(text, &results); err != nil {
		return fmt.Errorf("results.json: %w", err)
	}
	if results.Format != format {
		return fmt.Errorf("results.json of format %d, expected %d: measure again, or use the shai that it was made with",
			results.Format, format)
	}
	if len(results.Throughput) == 0 {
		return fmt.Errorf("results.json has no session length; the measurement was not finished: measure again")
	}
	if err := wellFormed("", reflect.ValueOf(results)); err != nil {
		return fmt.Errorf("results.json: %w", err)
	}
	for _, latency := range results.Latency {
		if len(latency.Counts) != len(latency.Bounds)+1 || !slices.IsSorted(latency.Bounds) ||
			slices.Min(latency.Counts) < 0 {
			return fmt.Errorf("results.json: latency of mode %q: expected ascending bounds, and a count of 0 or more for "+
				"each, and one for what is above", latency.Mode)
		}
	}
	if err := a.takeResults(results); err != nil {
		return fmt.Errorf("results.json: %w", err)
	}
	a.Results = append(a.Results, results)
	return nil
}

// UnmarshalJSON reads an entry: the session length beside the modes.
func (t *Throughput) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	t.Modes = map[string]Mode{}
	for name, value := range fields {
		if name == "sessionLength" {
			if err := json.Unmarshal(value, &t.SessionLength); err != nil {
				return fmt.Errorf("sessionLength: %w", err)
			}
			continue
		}
		var mode Mode
		if err := json.Unmarshal(value, &mode); err != nil {
			return fmt.Errorf("mode %q: %w", name, err)
		}
		t.Modes[name] = mode
	}
	return nil
}

// order is the usual order of what is compared; others follow by name.
var order = []string{"baseline", "dynamic", "dynamic-lazy", "shai", "beside", "audit", "process", "forked", "control"}

// InOrder returns the names of modes as tables show them.
func InOrder[V any](modes map[string]V) []string {
	var names []string
	for _, name := range order {
		if _, given := modes[name]; given {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if !slices.Contains(order, name) {
			names = append(names, name)
		}
	}
	return names
}
