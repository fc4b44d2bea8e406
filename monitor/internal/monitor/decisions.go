// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"encoding/binary"
	"os"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// decisions counts accesses by their outcome: those that the monitor decided, and the
// documents that the kernel opened natively because they had been decided ahead. The
// tasks count the latter themselves (wire.Counters): they are for judging load, not for
// evidence. Safe for concurrent use.
type decisions struct {
	description *prometheus.Desc

	mu    sync.Mutex
	count map[outcomeKey]uint64
	pages map[*os.File]string // pages of running tasks, with their pipelines
}

type outcomeKey struct {
	pipeline string
	allowed  bool
}

func newDecisions() *decisions {
	return &decisions{
		description: prometheus.NewDesc("shai_decisions_total",
			"Accesses that were decided, natively opened documents among them, by outcome.",
			[]string{"pipeline", "allowed"}, nil),
		count: map[outcomeKey]uint64{}, pages: map[*os.File]string{},
	}
}

func (d *decisions) add(pipeline string, allowed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count[outcomeKey{pipeline, allowed}]++
}

// watch reads a task's page from now on.
func (d *decisions) watch(pipeline string, page *os.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pages[page] = pipeline
}

// retire keeps what a page says and closes it. One that is not watched is no error.
func (d *decisions) retire(page *os.File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pipeline, watched := d.pages[page]
	if !watched {
		return
	}
	d.count[outcomeKey{pipeline, true}] += fastOpens(page)
	delete(d.pages, page)
	page.Close()
}

// fastOpens is the first field of wire.Counters; 0 where it cannot be read.
func fastOpens(page *os.File) uint64 {
	var field [8]byte
	if _, err := page.ReadAt(field[:], 0); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(field[:])
}

// Describe implements [prometheus.Collector].
func (d *decisions) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- d.description }

// Collect implements [prometheus.Collector].
func (d *decisions) Collect(metrics chan<- prometheus.Metric) {
	d.mu.Lock()
	totals := make(map[outcomeKey]uint64, len(d.count))
	for key, count := range d.count {
		totals[key] = count
	}
	for page, pipeline := range d.pages {
		totals[outcomeKey{pipeline, true}] += fastOpens(page)
	}
	d.mu.Unlock()
	for key, count := range totals {
		metrics <- prometheus.MustNewConstMetric(d.description, prometheus.CounterValue, float64(count), key.pipeline, strconv.FormatBool(key.allowed))
	}
}
