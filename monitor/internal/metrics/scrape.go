// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"shai.dev/monitor/internal/bug"
)

// Limits on scrapes. Those that wait share the next gathering, so that each gets values that are
// not older than its request. Gathering takes one processor for at most one part in restShare of
// the time, however many ask.
const (
	maxScrapes  = 64 // that wait, or whose answers are being read
	restShare   = 20
	longestRest = time.Second
	gatherLimit = 10 * time.Second // how long a scrape waits
	writeLimit  = 10 * time.Second // how long its answer may take to be read
	retryAfter  = 1                // second
)

// formats are those of answers. The first is for who accepts anything.
var formats = []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), openMetrics(expfmt.OpenMetricsVersion_1_0_0),
	openMetrics(expfmt.OpenMetricsVersion_0_0_1)}

func openMetrics(version string) expfmt.Format {
	format, err := expfmt.NewOpenMetricsFormat(version)
	if err != nil {
		bug.Found("OpenMetrics %s: %v", version, err)
	}
	return format
}

// Handler answers scrapes, in OpenMetrics' format or in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return &scraper{gatherer: m, rejected: func() { m.scrapesRejected.in(m.monitor, values{}).add(1) },
		places: make(chan struct{}, maxScrapes), wait: gatherLimit, read: writeLimit,
		now: time.Now, sleep: time.Sleep}
}

type scraper struct {
	gatherer   prometheus.Gatherer
	rejected   func()
	places     chan struct{}
	wait, read time.Duration
	now        func() time.Time
	sleep      func(time.Duration)

	mu      sync.Mutex
	next    *gathering // that has not begun; nil: nobody waits for one
	running bool       // something gathers, and will see next
}

// gathering is one look at all metrics, for all who asked before it began.
type gathering struct {
	formats map[expfmt.Format][]byte // that were asked for; filled in when done is closed
	err     error                    // likewise
	done    chan struct{}
}

// ServeHTTP implements [http.Handler].
func (s *scraper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		s.reject(w, "too many scrapes are under way")
		return
	}
	format := expfmt.NegotiateAccept(r.Header, formats...)
	found := s.join(format)
	limit := time.NewTimer(s.wait)
	defer limit.Stop()
	select {
	case <-found.done:
	case <-r.Context().Done():
		return
	case <-limit.C:
		s.reject(w, "the metrics cannot be gathered in time")
		return
	}
	if found.err != nil {
		http.Error(w, found.err.Error(), http.StatusInternalServerError)
		return
	}
	s.write(w, format, found.formats[format])
}

func (s *scraper) reject(w http.ResponseWriter, why string) {
	s.rejected()
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	http.Error(w, why+"; try again later", http.StatusServiceUnavailable)
}

// write sends an answer. Who reads slowly loses the connection.
func (s *scraper) write(w http.ResponseWriter, format expfmt.Format, text []byte) {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(s.read)); err != nil {
		http.Error(w, "write metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if _, err := w.Write(text); err != nil {
		return // the connection is broken, and closed
	}
	if control.Flush() == nil { // before the deadline goes
		_ = control.SetWriteDeadline(time.Time{})
	}
}

// join returns the next gathering, which will have the format.
func (s *scraper) join(format expfmt.Format) *gathering {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &gathering{formats: map[expfmt.Format][]byte{}, done: make(chan struct{})}
	}
	s.next.formats[format] = nil
	if !s.running {
		s.running = true
		go s.run()
	}
	return s.next
}

// run gathers for as long as somebody waits, and rests in between.
func (s *scraper) run() {
	for {
		s.mu.Lock()
		now := s.next
		if s.next = nil; now == nil {
			s.running = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		begun := s.now()
		now.err = now.gather(s.gatherer)
		close(now.done)
		s.sleep(min(restShare*s.now().Sub(begun), longestRest))
	}
}

func (g *gathering) gather(from prometheus.Gatherer) error {
	families, err := from.Gather()
	if err != nil {
		return err //nolint:wrapcheck // names the metric
	}
	for format := range g.formats {
		var text bytes.Buffer
		encoder := expfmt.NewEncoder(&text, format)
		for _, family := range families {
			if err := encoder.Encode(family); err != nil {
				return err //nolint:wrapcheck // names the metric
			}
		}
		if closer, ends := encoder.(io.Closer); ends {
			if err := closer.Close(); err != nil {
				return err //nolint:wrapcheck // of a buffer
			}
		}
		g.formats[format] = text.Bytes()
	}
	return nil
}
