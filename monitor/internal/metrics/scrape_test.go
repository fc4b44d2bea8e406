// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"shai.dev/monitor/internal/waiting"
)

func readAll(t testing.TB, answer *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s, %v", answer.StatusCode, text, err)
	}
	return string(text)
}

// held is a gatherer that waits until it is released.
type held struct {
	prometheus.Gatherer
	begun, release chan struct{}
}

func (h held) Gather() ([]*dto.MetricFamily, error) {
	h.begun <- struct{}{}
	<-h.release
	return h.Gatherer.Gather()
}

func newScraper(m *Metrics) *scraper { return m.Handler().(*scraper) }

func heldScraper(m *Metrics) (*scraper, held) {
	s := newScraper(m)
	h := held{m, make(chan struct{}), make(chan struct{})}
	s.gatherer, s.sleep = h, func(time.Duration) {}
	return s, h
}

func scrape(ctx context.Context, s *scraper) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	s.ServeHTTP(deadlined{answer}, httptest.NewRequest(http.MethodGet, "/metrics", nil).WithContext(ctx))
	return answer
}

// deadlined is an answer in memory, which is read at once.
type deadlined struct{ *httptest.ResponseRecorder }

func (deadlined) SetWriteDeadline(time.Time) error { return nil }

// Those that come while others are gathered for share the next gathering; no more than the
// limit wait, and the others are refused and counted. What is refused takes no place.
func TestConcurrentScrapesAreBounded(t *testing.T) {
	m := New()
	s, h := heldScraper(m)
	var group sync.WaitGroup
	codes := make(chan int, maxScrapes)
	ask := func() { group.Go(func() { codes <- scrape(t.Context(), s).Code }) }
	ask()
	<-h.begun
	for range maxScrapes - 1 {
		ask()
	}
	waiting.Until(t, "all places are taken", func() bool { return len(s.places) == maxScrapes })
	for range 3 {
		answer := scrape(t.Context(), s)
		if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
			t.Errorf("one too many: %d, Retry-After %q", answer.Code, answer.Header().Get("Retry-After"))
		}
	}
	h.release <- struct{}{}
	<-h.begun // one gathering for all that have come meanwhile
	h.release <- struct{}{}
	group.Wait()
	for range maxScrapes {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	expectSeries(t, m, "shai_scrapes_rejected_total", "shai_scrapes_rejected_total 3")
}

// A scrape sees what was counted before it came, also if another one was under way.
func TestScrapesSeeWhatWasCountedBefore(t *testing.T) {
	m := New()
	s, h := heldScraper(m)
	var group sync.WaitGroup
	group.Go(func() { scrape(t.Context(), s) })
	<-h.begun
	m.AuditFailed()
	var second string
	group.Go(func() { second = scrape(t.Context(), s).Body.String() })
	waiting.Until(t, "the second one waits", func() bool { return len(s.places) == 2 })
	h.release <- struct{}{}
	<-h.begun
	h.release <- struct{}{}
	group.Wait()
	if !strings.Contains(second, "shai_audit_failures_total 1\n") {
		t.Error("the second scrape has an older value")
	}
}

// Gathering that does not end ends the scrapes that wait for it, and not the monitor.
func TestGatheringHasATimeLimit(t *testing.T) {
	m := New()
	s, h := heldScraper(m)
	s.wait = time.Millisecond
	go func() { <-h.begun }()
	if answer := scrape(t.Context(), s); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", answer.Code)
	}
	if len(s.places) != 0 {
		t.Error("its place is taken")
	}
	close(h.release)
}

// slow is a gatherer that takes some time of its clock.
type slow struct {
	prometheus.Gatherer
	clock time.Time
	takes time.Duration
}

func (s *slow) Gather() ([]*dto.MetricFamily, error) {
	s.clock = s.clock.Add(s.takes)
	return s.Gatherer.Gather()
}

// After each gathering there is a rest of 20 times what it took, and of at most a second.
func TestGatheringRests(t *testing.T) {
	m := New()
	s := newScraper(m)
	gatherer := &slow{Gatherer: m}
	rests := make(chan time.Duration, 1)
	s.gatherer, s.now = gatherer, func() time.Time { return gatherer.clock }
	s.sleep = func(long time.Duration) { rests <- long }
	for takes, want := range map[time.Duration]time.Duration{
		time.Millisecond: 20 * time.Millisecond, 49 * time.Millisecond: 980 * time.Millisecond,
		51 * time.Millisecond: time.Second, time.Hour: time.Second,
	} {
		gatherer.takes = takes
		if answer := scrape(t.Context(), s); answer.Code != http.StatusOK {
			t.Fatalf("status %d", answer.Code)
		}
		waiting.Until(t, "it rests", func() bool { return len(rests) == 1 })
		if long := <-rests; long != want {
			t.Errorf("after %v it rests for %v, want %v", takes, long, want)
		}
	}
}

type broken struct{}

func (broken) Gather() ([]*dto.MetricFamily, error) { return nil, errors.New("two metrics are one") }

func TestFailureToGatherIsSaid(t *testing.T) {
	s := newScraper(New())
	s.gatherer = broken{}
	if answer := scrape(t.Context(), s); answer.Code != http.StatusInternalServerError ||
		!strings.Contains(answer.Body.String(), "two metrics are one") {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}

// Who does not read its answer loses the connection, and nobody waits for it.
func TestSlowReadersAreCutOff(t *testing.T) {
	m := New()
	for i := range maxPipelines { // so that the answer does not fit the sockets' buffers
		p := m.Pipeline(fmt.Sprint(strings.Repeat("x", maxValue-3), i), Names{})
		p.Decided("documents", "read", true)
		p.Opened(ByMonitor, true, 1)
		p.Bound(Analyzed)
	}
	s := newScraper(m)
	s.read = time.Millisecond
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(1); err != nil {
			t.Error(err)
		}
		return ctx
	}
	server.Start()
	defer server.Close()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.(*net.TCPConn).SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	asked := "GET /metrics HTTP/1.1\r\nHost: monitor\r\n\r\n"
	if _, err := io.WriteString(connection, asked); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, "the scrape has begun", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.running
	})
	waiting.Until(t, "its place is free", func() bool { return len(s.places) == 0 })
	read := int64(0)
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err == nil { // else it was cut off before its first byte
		defer answer.Body.Close()
		read, err = io.Copy(io.Discard, answer.Body)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it was not cut off, %d bytes came: %v", read, err)
	}
}
