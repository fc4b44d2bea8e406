// SPDX-License-Identifier: BSD-2-Clause

package sources

import "fmt"

// Room is how many cells the tables of everything that was given may have, of one quantity each. A page
// has room for fewer, and a small file can name more modes and session lengths than fit into memory.
const Room = 200_000

// take takes the room of a table. The error says that there is none.
func (a *All) take(columns, rows int) error {
	if a.cells += columns * rows; a.cells > Room {
		return fmt.Errorf("a table of %d by %d figures: with what was given before, that is more than the %d for which a "+
			"report has room: give a part of it", columns, rows, Room)
	}
	return nil
}

// takeResults takes the room of results.
func (a *All) takeResults(results Results) error {
	if err := a.take(len(results.Throughput[0].Modes), len(results.Throughput)); err != nil {
		return fmt.Errorf("throughput: %w", err)
	}
	modes, bounds := map[int]map[string]bool{}, map[int]map[float64]bool{} // by session length
	for _, latency := range results.Latency {
		if modes[latency.SessionLength] == nil {
			modes[latency.SessionLength], bounds[latency.SessionLength] = map[string]bool{}, map[float64]bool{}
		}
		modes[latency.SessionLength][latency.Mode] = true
		for _, bound := range latency.Bounds {
			bounds[latency.SessionLength][bound] = true
		}
	}
	for length := range modes {
		if err := a.take(len(modes[length]), len(bounds[length])); err != nil {
			return fmt.Errorf("latency: %w", err)
		}
	}
	if err := a.takeSlices(results.Slices); err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}

// takeSlices takes the room of samples.
func (a *All) takeSlices(slices []Slice) error {
	modes, processes := map[string]bool{}, map[string]bool{}
	for _, slice := range slices {
		modes[slice.Mode] = true
		for process := range slice.ProcessSeconds {
			processes[process] = true
		}
	}
	return a.take(len(modes), len(processes))
}
