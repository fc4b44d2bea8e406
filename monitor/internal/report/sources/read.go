// SPDX-License-Identifier: BSD-2-Clause

package sources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"shai.dev/monitor/internal/audit"
)

// Forms are what a report shows, for messages.
const Forms = "results.json, session.json or samples.csv of a measurement, result.json of a scenario, objects as kubectl get -o json prints them, " +
	"or records of shai audit -o json"

// ErrUnknown is the error for a text that is nothing that a report shows.
var ErrUnknown = errors.New("not of a known form; expected " + Forms)

// Add reads a text and adds what it has. The error for one of no known form is ErrUnknown.
func (a *All) Add(name string, text []byte) error {
	if bytes.HasPrefix(text, []byte(columns)) {
		samples, err := readSamples(name, text)
		if err == nil {
			err = a.takeSlices(samples.Slices)
		}
		if err != nil {
			return fmt.Errorf("read %s: samples.csv: %w", name, brief{err})
		}
		a.Samples = append(a.Samples, samples)
		return nil
	}
	values, err := decode(text)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, brief{err})
	}
	known := false
	for _, value := range values {
		added, err := a.addValue(name, value)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, brief{err})
		}
		known = known || added
	}
	if !known {
		return fmt.Errorf("read %s: %w", name, ErrUnknown)
	}
	return nil
}

// decode returns the values of a text in JSON, also one after the other, or in YAML.
func decode(text []byte) ([]json.RawMessage, error) {
	var values []json.RawMessage
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		for decoder := json.NewDecoder(bytes.NewReader(trimmed)); ; {
			var value json.RawMessage
			if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
				return values, nil
			} else if err != nil {
				return nil, fmt.Errorf("no valid JSON: %w; was it written to its end? Make it again, or leave it out", err)
			}
			values = append(values, value)
		}
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(trimmed)); ; {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, fmt.Errorf("%w (as YAML: %w)", ErrUnknown, err)
		}
		value, err := json.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("%w (as YAML: %w)", ErrUnknown, err)
		}
		values = append(values, value)
	}
}

// shape are the fields by which values are known.
type shape struct {
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
	Throughput json.RawMessage   `json:"throughput"`
	ByProcess  json.RawMessage   `json:"by_process"`
	Leak       json.RawMessage   `json:"leak"`
	Scenario   json.RawMessage   `json:"scenario"`
	Parts      json.RawMessage   `json:"parts"`
	Sequence   uint64            `json:"sequence"`
	Previous   *string           `json:"previous"`
}

// shapeOf returns false for what is something else, because its fields have other types.
func shapeOf(value json.RawMessage) (shape, bool) {
	var known shape
	err := json.Unmarshal(value, &known)
	return known, err == nil
}

// addValue adds a value if it is of a known form.
func (a *All) addValue(name string, value json.RawMessage) (bool, error) {
	if len(value) > 0 && value[0] == '[' {
		return a.addList(name, value)
	}
	known, found := shapeOf(value)
	if !found {
		return false, nil
	}
	switch {
	case known.Throughput != nil:
		return true, a.addResults(name, "", value)
	case known.ByProcess != nil:
		var sessions Sessions
		if err := json.Unmarshal(value, &sessions); err != nil {
			return false, fmt.Errorf("session.json: %w", err)
		}
		if err := wellFormed("", reflect.ValueOf(sessions)); err != nil {
			return false, fmt.Errorf("session.json: %w", err)
		}
		sessions.Text = value
		a.Sessions = append(a.Sessions, sessions)
		return true, nil
	case known.Leak != nil:
		var found Verification
		if err := json.Unmarshal(value, &found); err != nil {
			return false, fmt.Errorf("result of a leak attempt: %w", err)
		}
		a.Verification = &found
		return true, nil
	case known.Scenario != nil && known.Parts != nil:
		return true, a.addLoad(value)
	case known.Sequence > 0 && known.Previous != nil:
		return true, a.addRecord(value)
	case strings.HasSuffix(known.Kind, "List"):
		return true, a.addItems(known.Items)
	}
	return a.addObject(known.Kind, value)
}

// addList adds a list: of audit records, or of objects.
func (a *All) addList(name string, value json.RawMessage) (bool, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil {
		return false, err
	}
	if len(items) == 0 { // what shai audit prints when there is no record
		a.Recorded = true
		return true, nil
	}
	found := false
	for _, item := range items {
		if len(item) == 0 || item[0] != '{' {
			continue
		}
		added, err := a.addValue(name, item)
		if err != nil {
			return false, err
		}
		found = found || added
	}
	return found, nil
}

// addItems adds the objects of a List, and leaves out those of other kinds.
func (a *All) addItems(items []json.RawMessage) error {
	for _, item := range items {
		if known, found := shapeOf(item); found {
			if _, err := a.addObject(known.Kind, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *All) addRecord(value json.RawMessage) error {
	var record audit.Record
	if err := json.Unmarshal(value, &record); err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	a.Recorded = true
	if !record.Allowed && slices.Contains([]audit.Kind{audit.Denial, audit.Decision, audit.Binding}, record.Kind) {
		a.Denials = append(a.Denials, record)
	}
	return nil
}
