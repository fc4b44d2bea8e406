// SPDX-License-Identifier: BSD-2-Clause

package sources

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// columns begin the first line of samples.csv.
const columns = "round,order,mode,session_length,"

// readSamples reads the columns that the report shows.
func readSamples(name string, text []byte) (Samples, error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return Samples{}, err
	}
	samples := Samples{Name: name, Text: text}
	at := map[string]int{}
	for _, column := range []string{"mode", "session_length", "sessions", "process_cpu_seconds"} {
		if at[column] = slices.Index(rows[0], column); at[column] < 0 {
			return Samples{}, fmt.Errorf("no column %s", column)
		}
	}
	for i, row := range rows[1:] {
		length, notLength := strconv.Atoi(row[at["session_length"]])
		sessions, notSessions := strconv.ParseFloat(row[at["sessions"]], 64)
		slice := Slice{Mode: row[at["mode"]], SessionLength: length, Sessions: sessions}
		notParts := json.Unmarshal([]byte(row[at["process_cpu_seconds"]]), &slice.ProcessSeconds)
		if err := cmp.Or(notLength, notSessions, notParts); err != nil {
			return Samples{}, fmt.Errorf("line %d: %w", i+2, err)
		}
		samples.Slices = append(samples.Slices, slice)
	}
	return samples, nil
}
