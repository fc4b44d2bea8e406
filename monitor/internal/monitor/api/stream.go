// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"shai.dev/monitor/internal/audit"
)

// A stream is JSON lines. Its status is 200 from its first line on, so a later failure is
// sent as a line of its own.

// analysisLine is one line of a running analysis. The last line holds the result or a
// problem.
type analysisLine struct {
	Progress *Progress `json:"progress,omitempty"`
	Analysis *Analysis `json:"analysis,omitempty"`
	Problem  *Problem  `json:"problem,omitempty"`
}

// auditLine is one record, or the problem that ended the stream.
type auditLine struct {
	Record  *audit.Record `json:"record,omitempty"`
	Problem *Problem      `json:"problem,omitempty"`
}

// stream writes lines and flushes each of them to the client.
type stream struct {
	encoder *json.Encoder
	flush   func() error
	begun   bool
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "application/jsonl")
	return &stream{encoder: json.NewEncoder(w), flush: http.NewResponseController(w).Flush}
}

func (s *stream) send(line any) error {
	s.begun = true
	if err := s.encoder.Encode(line); err != nil {
		return err
	}
	return s.flush()
}

func (l analysisLine) step() (*Progress, *Analysis, *Problem) {
	return l.Progress, l.Analysis, l.Problem
}

// progressLine is a step of a long request.
type progressLine struct {
	Progress *Progress `json:"progress,omitempty"`
	Problem  *Problem  `json:"problem,omitempty"`
}

// streamed runs a long request. It streams the progress, and then the result as the last
// line. When the client disconnects, the request's context ends, and the run with it.
func streamed(w http.ResponseWriter, r *http.Request, title string,
	run func(context.Context, func(Progress)) (any, error)) error {
	lines := newStream(w)
	ctx, cancel := UntilClosing(r.Context())
	defer cancel()
	last, err := run(ctx, func(p Progress) { _ = lines.send(progressLine{Progress: &p}) })
	switch {
	case err == nil:
		return ignoreGone(lines.send(last))
	case lines.begun:
		return ignoreGone(lines.send(progressLine{Problem: problemOf(title, err)}))
	}
	return err
}

// follow reads the output of streamed: progress, then one result of the line's type.
func follow[Line interface {
	step() (*Progress, *Result, *Problem)
}, Result any](ctx context.Context, c *Client, path string, request any, progress func(Progress)) (Result, error) {
	var none Result
	content, err := c.send(ctx, http.MethodPost, path, nil, request)
	if err != nil {
		return none, err
	}
	defer content.Close()
	for lines := json.NewDecoder(content); ; {
		var line Line
		if err := lines.Decode(&line); err != nil {
			return none, fmt.Errorf("read the answer to %s: the monitor stopped before it had finished: %w", path, err)
		}
		step, result, problem := line.step()
		switch {
		case result != nil:
			return *result, nil
		case problem != nil:
			return none, problem
		case step != nil && progress != nil:
			progress(*step)
		}
	}
}

func (h *Handler) analyze(w http.ResponseWriter, r *http.Request) error {
	var request AnalyzeRequest
	if err := read(w, r, maxBody, &request); err != nil {
		return err
	}
	if err := request.check(); err != nil {
		return err
	}
	return streamed(w, r, "analyze", func(ctx context.Context, progress func(Progress)) (any, error) {
		result, err := h.Service.Analyze(ctx, request, progress)
		return analysisLine{Analysis: &result}, err
	})
}

func (h *Handler) query(w http.ResponseWriter, r *http.Request) error {
	query, err := auditQueryOf(r.URL.Query())
	if err != nil {
		return err
	}
	lines := newStream(w)
	if query.Follow {
		// The client learns that it is following before the first record arrives.
		if err := lines.flush(); err != nil {
			return nil
		}
		lines.begun = true
	}
	ctx, cancel := UntilClosing(r.Context())
	defer cancel()
	err = h.Audit.Query(ctx, query, func(record audit.Record) error {
		return lines.send(auditLine{Record: &record})
	})
	if err != nil && lines.begun {
		return ignoreGone(lines.send(auditLine{Problem: problemOf("query audit log", err)}))
	}
	return err
}

// ignoreGone drops the error of writing to a client that has disconnected: nobody would
// receive it.
func ignoreGone(error) error { return nil }
