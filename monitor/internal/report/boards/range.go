// SPDX-License-Identifier: BSD-2-Clause

package boards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"shai.dev/monitor/internal/shape"
)

// Wanted is a range of a Prometheus.
type Wanted struct {
	Server string        // URL
	From   time.Time     // zero: Last before To
	To     time.Time     // zero: now, by the clock of Prometheus
	Last   time.Duration // used if From is zero
	Scrape time.Duration // how often Prometheus reads its targets
}

// Range is what the panels show in a range.
type Range struct {
	Server   string // without a password
	From, To time.Time
	Step     time.Duration
	Panels   []Reading
	Beside   []Reading // of the report only
}

// Reading is a panel with the results of its queries.
type Reading struct {
	Panel
	Results [][]Series // by query
}

// Series is one result of a query: one point if the panel is about the range's end.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at an instant; it may be no number.
type Point struct {
	At    time.Time
	Value float64
}

const (
	// points is how many instants a chart has at most: more than it has pixels tell nothing.
	points = 240
	// patience is how long one query may take.
	patience = 60 * time.Second
	// largest is the size of the largest answer, in bytes.
	largest = 64 << 20
	// crowd is the largest number of results of a query.
	crowd = 20_000
)

// Read asks Prometheus; tell is called before each panel with its number, from 1.
func Read(ctx context.Context, wanted Wanted, tell func(number, of int, title string)) (*Range, error) {
	server, err := url.Parse(wanted.Server)
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
		return nil, fmt.Errorf("--prometheus %q: expected a URL such as http://127.0.0.1:9090", wanted.Server)
	}
	client, err := api.NewClient(api.Config{Address: wanted.Server, Client: &http.Client{
		Transport: bounded{api.DefaultRoundTripper}, CheckRedirect: stay}})
	if err != nil {
		return nil, fmt.Errorf("--prometheus %q: %w", wanted.Server, err)
	}
	r := reader{api: v1.NewAPI(client), scrape: wanted.Scrape, shown: Range{Server: server.Redacted()}}
	if err := r.limit(ctx, wanted); err != nil {
		return nil, r.explain(err)
	}
	overhead, beside := panels()
	for i, panel := range append(overhead, beside...) {
		tell(i+1, len(overhead)+len(beside), panel.Title)
		reading, err := r.panel(ctx, panel)
		if err != nil {
			return nil, r.explain(fmt.Errorf("panel %s: %w", panel.ID, err))
		}
		if i < len(overhead) {
			r.shown.Panels = append(r.shown.Panels, reading)
		} else {
			r.shown.Beside = append(r.shown.Beside, reading)
		}
	}
	return &r.shown, nil
}

// reader reads a range of one Prometheus.
type reader struct {
	api    v1.API
	scrape time.Duration
	shown  Range
}

// limit sets the range and its step.
func (r *reader) limit(ctx context.Context, wanted Wanted) error {
	r.shown.From, r.shown.To = wanted.From, wanted.To
	if wanted.To.IsZero() {
		now, err := r.now(ctx)
		if err != nil {
			return err
		}
		r.shown.To = now
	}
	if wanted.From.IsZero() {
		r.shown.From = r.shown.To.Add(-wanted.Last)
	}
	length := r.shown.To.Sub(r.shown.From)
	if length <= 0 {
		return fmt.Errorf("the range ends at %s, before it begins at %s", r.shown.To.UTC().Format(time.RFC3339),
			r.shown.From.UTC().Format(time.RFC3339))
	}
	r.shown.Step = max((length/points).Truncate(time.Second)+time.Second, r.scrape)
	return nil
}

// now is the clock of Prometheus, which this machine's need not agree with.
func (r *reader) now(ctx context.Context) (time.Time, error) {
	value, err := r.query(ctx, "time()", time.Time{})
	if err != nil {
		return time.Time{}, err
	}
	scalar, err := typed[*model.Scalar](value)
	if err != nil {
		return time.Time{}, err
	}
	return scalar.Timestamp.Time(), nil
}

// typed returns an answer of a type; an answer may have another one, or none.
func typed[T model.Value](value model.Value) (T, error) {
	found, ok := value.(T)
	if !ok {
		return found, fmt.Errorf("an answer is a %T, expected a %T", value, found)
	}
	return found, nil
}

func (r *reader) query(ctx context.Context, query string, at time.Time) (model.Value, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	value, _, _, err := r.api.Query(ctx, query, at)
	return value, err
}

func (r *reader) panel(ctx context.Context, panel Panel) (Reading, error) {
	reading := Reading{Panel: panel}
	for _, query := range panel.Queries {
		expr := expression(query.Expr, r.shown.To.Sub(r.shown.From), r.shown.Step, r.scrape)
		series, err := r.series(ctx, expr, panel.Instant)
		if err != nil {
			return Reading{}, err
		}
		reading.Results = append(reading.Results, series)
	}
	return reading, nil
}

func (r *reader) series(ctx context.Context, expr string, instant bool) ([]Series, error) {
	if instant {
		value, err := r.query(ctx, expr, r.shown.To)
		if err != nil {
			return nil, err
		}
		return vector(value)
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	value, _, _, err := r.api.QueryRange(ctx, expr, v1.Range{Start: r.shown.From, End: r.shown.To, Step: r.shown.Step})
	if err != nil {
		return nil, err
	}
	matrix, err := typed[model.Matrix](value)
	if err != nil {
		return nil, err
	}
	if err := few(len(matrix)); err != nil {
		return nil, err
	}
	series := make([]Series, len(matrix))
	for i, stream := range matrix {
		if most := int(r.shown.To.Sub(r.shown.From)/r.shown.Step) + 2; len(stream.Values) > most {
			return nil, fmt.Errorf("an answer has %d instants of a result, at most %d were asked for", len(stream.Values), most)
		}
		series[i].Labels = labels(stream.Metric)
		for _, pair := range stream.Values {
			series[i].Points = append(series[i].Points, Point{pair.Timestamp.Time(), float64(pair.Value)})
		}
	}
	return series, nil
}

func vector(value model.Value) ([]Series, error) {
	found, err := typed[model.Vector](value)
	if err != nil {
		return nil, err
	}
	if err := few(len(found)); err != nil {
		return nil, err
	}
	series := make([]Series, len(found))
	for i, sample := range found {
		series[i] = Series{labels(sample.Metric), []Point{{sample.Timestamp.Time(), float64(sample.Value)}}}
	}
	return series, nil
}

// few refuses more results than a report can show.
func few(results int) error {
	if results > crowd {
		return fmt.Errorf("an answer has %d results, more than %d", results, crowd)
	}
	return nil
}

func labels(metric model.Metric) map[string]string {
	found := map[string]string{}
	for name, value := range metric {
		found[string(name)] = string(value)
	}
	return found
}

// redirected is the error for an answer that sends requests elsewhere.
type redirected struct{ to *url.URL }

func (r redirected) Error() string { return "it redirects to " + r.to.Redacted() }

// base is the address that --prometheus would have for the place that an answer names.
func (r redirected) base() string {
	path, _, _ := strings.Cut(r.to.Path, "/api/v1/")
	return (&url.URL{Scheme: r.to.Scheme, Host: r.to.Host, Path: path}).String()
}

// stay follows no redirect: whoever answers could send requests to any service that this
// machine reaches, and what that one says into the report.
func stay(next *http.Request, _ []*http.Request) error { return redirected{next.URL} }

// explain says what to do about an error of Prometheus, in one line, whatever Prometheus says.
func (r *reader) explain(err error) error {
	var unreachable *net.OpError
	var refused *v1.Error
	var moved redirected
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &moved):
		return fmt.Errorf("Prometheus at %s redirects to %s, which is not followed: if that is your Prometheus, give "+
			"--prometheus %s", r.shown.Server, moved.to.Redacted(), moved.base())
	case errors.As(err, &unreachable):
		return fmt.Errorf("no Prometheus at %s: %w; start it, or leave --prometheus out", r.shown.Server, unreachable.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("Prometheus at %s did not answer within %s: ask for a shorter range", r.shown.Server, patience)
	case errors.As(err, &refused):
		return fmt.Errorf("Prometheus at %s refused a query: %s (is it the address of a Prometheus?)", r.shown.Server,
			said(err))
	}
	return fmt.Errorf("ask Prometheus at %s: %s", r.shown.Server, said(err))
}

// longest is how many characters of a server's text an error has at most.
const longest = 500

// said returns the text of an error in one line that is not too long: it may be the server's.
func said(err error) string {
	text := []rune(err.Error())
	if len(text) > longest {
		text = append(text[:longest], '…')
	}
	return shape.Visible(string(text))
}

// bounded refuses answers that are too large to be shown.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{response.Body, largest}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("an answer is larger than %d MiB: ask for a shorter range", largest>>20)
	}
	return n, err
}
