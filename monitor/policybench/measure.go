// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// sliceTime is the processor time for which an engine answers before the next one does.
const sliceTime = 10 * time.Millisecond

// agree asks every engine every question. An error names the first wrong answer.
func agree(s *scenario, engines map[string]engine, questions []question) error {
	for _, b := range builders {
		for _, q := range questions {
			ask, err := engines[b.name].prepare(q)
			if err != nil {
				return err
			}
			got, err := ask()
			if err != nil {
				return fmt.Errorf("%s, %s: may %s read %s: %w", b.title, s.name, q.user, q.document, err)
			}
			if want := s.allows(s, q.user, q.document); got != want {
				return fmt.Errorf("%s, %s: may %s read %s: it says %v, which is wrong", b.title, s.name, q.user,
					q.document, got)
			}
		}
	}
	return nil
}

// estimate is a median over rounds, and the ends of the interval that holds it with 95 %
// confidence (bootstrap over the rounds).
type estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

func estimated(random *rand.Rand, samples []float64) estimate {
	const draws = 2000
	medians := make([]float64, draws)
	drawn := make([]float64, len(samples))
	for i := range medians {
		for j := range drawn {
			drawn[j] = samples[random.IntN(len(samples))]
		}
		medians[i] = median(drawn)
	}
	slices.Sort(medians)
	return estimate{median(samples), medians[draws*25/1000], medians[draws*975/1000]}
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	if middle := len(sorted) / 2; len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[len(sorted)/2]
}

// row is a line of the table: one kind of policy and answer.
type row struct {
	Policy      string              `json:"policy"`
	Answer      string              `json:"answer"`
	Nanoseconds map[string]estimate `json:"ns_per_question"`
	Allocations map[string]float64  `json:"allocations_per_question"`
	// Ratio is how many times longer the faster of the others takes than Shai does.
	Ratio estimate `json:"ratio"`
}

// measured lets the engines answer the same questions in turn, in each round in another
// order, so that what else the machine does slows all of them down.
func measured(random *rand.Rand, engines map[string]engine, questions []question, rounds int) (row, error) {
	asks := make(map[string][]func() (bool, error))
	for name, e := range engines {
		for _, q := range questions {
			ask, err := e.prepare(q)
			if err != nil {
				return row{}, err
			}
			asks[name] = append(asks[name], ask)
		}
	}
	samples := make(map[string][]float64)
	var ratios []float64
	result := row{Nanoseconds: make(map[string]estimate), Allocations: make(map[string]float64)}
	for range rounds {
		times := make(map[string]float64)
		for _, i := range random.Perm(len(builders)) {
			name := builders[i].name
			nanoseconds, allocations, err := slice(asks[name])
			if err != nil {
				return row{}, err
			}
			times[name], result.Allocations[name] = nanoseconds, allocations
			samples[name] = append(samples[name], nanoseconds)
		}
		fastest := times[others[0]]
		for _, other := range others[1:] {
			fastest = min(fastest, times[other])
		}
		ratios = append(ratios, fastest/times["shai"])
	}
	for name, of := range samples {
		result.Nanoseconds[name] = estimated(random, of)
	}
	result.Ratio = estimated(random, ratios)
	return result, nil
}

// processorTime is what the process has used, garbage collection included: unlike the time
// of the clock, it does not depend on what else the machine does.
func processorTime() (time.Duration, error) {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	return time.Duration(used.Nano()), nil
}

// slice asks all questions again and again, and returns what one takes.
func slice(asks []func() (bool, error)) (nanoseconds, allocations float64, err error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, err := processorTime()
	if err != nil {
		return 0, 0, err
	}
	count, took := 0, time.Duration(0)
	for took < sliceTime {
		for _, ask := range asks {
			if _, err := ask(); err != nil {
				return 0, 0, err
			}
		}
		count += len(asks)
		now, err := processorTime()
		if err != nil {
			return 0, 0, err
		}
		took = now - began
	}
	runtime.ReadMemStats(&after)
	allocations = float64((after.Mallocs - before.Mallocs) / uint64(count))
	return float64(took.Nanoseconds()) / float64(count), allocations, nil
}
