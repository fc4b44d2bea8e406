// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"encoding/json"
	"net/http"

	"shai.dev/monitor/internal/audit"
)

// A stream is JSON lines. Its status is 200 from its first line on, so that a later
// failure travels as a line of its own.

// analysisLine is one line of a running analysis; the last one is not a progress.
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

// stream writes lines and hands each to the client at once.
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

func (h *Handler) analyze(w http.ResponseWriter, r *http.Request) error {
	var request AnalyzeRequest
	if err := read(w, r, maxBody, &request); err != nil {
		return err
	}
	lines := newStream(w)
	ctx, cancel := untilClosing(r.Context())
	defer cancel()
	result, err := h.Service.Analyze(ctx, request, func(p Progress) {
		// A client that is gone ends the request's context, and with it the run.
		_ = lines.send(analysisLine{Progress: &p})
	})
	switch {
	case err == nil:
		return ignoreGone(lines.send(analysisLine{Analysis: &result}))
	case lines.begun:
		return ignoreGone(lines.send(analysisLine{Problem: problemOf("analyze", err)}))
	}
	return err
}

func (h *Handler) query(w http.ResponseWriter, r *http.Request) error {
	query, err := auditQueryOf(r.URL.Query())
	if err != nil {
		return err
	}
	lines := newStream(w)
	if query.Follow {
		// The client learns that it is following before anything happens.
		if err := lines.flush(); err != nil {
			return nil
		}
		lines.begun = true
	}
	ctx, cancel := untilClosing(r.Context())
	defer cancel()
	err = h.Audit.Query(ctx, query, func(record audit.Record) error {
		return lines.send(auditLine{Record: &record})
	})
	if err != nil && lines.begun {
		return ignoreGone(lines.send(auditLine{Problem: problemOf("query audit log", err)}))
	}
	return err
}

// ignoreGone drops the error of writing to a client that has gone away: there is
// nobody left to tell.
func ignoreGone(error) error { return nil }
