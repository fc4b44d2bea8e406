// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/audit/records"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/reading"
)

const readingTitle = "read by way of Kubernetes"

// Read implements [api.Service].
func (m *Monitor) Read(ctx context.Context, request reading.Request) (api.SealedAnswer, error) {
	if err := checkReading(request); err != nil {
		return api.SealedAnswer{}, err
	}
	if err := m.recordReading(request); err != nil {
		return api.SealedAnswer{}, api.Unavailable(readingTitle, "free space for the audit log",
			"the reading cannot be recorded: %v", err)
	}
	answer, err := m.answer(ctx, request)
	if problem := new(api.Problem); errors.As(err, &problem) && problem.Status != http.StatusServiceUnavailable {
		answer, err = reading.Answer{Refusal: problem.Error()}, nil
	}
	if err != nil {
		return api.SealedAnswer{}, err
	}
	sealed, err := reading.Seal(request.Recipient, answer)
	if err != nil {
		return api.SealedAnswer{}, api.Invalid(readingTitle, "", "%v", err)
	}
	return api.SealedAnswer{Sealed: sealed}, nil
}

// checkReading refuses requests that cannot be recorded or answered in any state.
func checkReading(request reading.Request) error {
	asked := 0
	for _, is := range []bool{request.Log != nil, request.Explain != nil, request.Audit != nil} {
		if is {
			asked++
		}
	}
	switch {
	case request.Reader == "":
		return api.Invalid(readingTitle, "say who reads", "the reader is missing")
	case asked != 1:
		return api.Invalid(readingTitle, "ask for one of log, explain and audit", "it asks for %d of them", asked)
	}
	if _, err := reading.Seal(request.Recipient, reading.Answer{}); err != nil {
		return api.Invalid(readingTitle, "", "%v", err)
	}
	return nil
}

// recordReading records who reads what, before anything is read. Readings are always recorded or
// refused, whatever else may go unrecorded.
func (m *Monitor) recordReading(request reading.Request) error {
	if err := m.audit.Failing(); err != nil {
		return err
	}
	return m.audit.Append(recordOf(request))
}

func recordOf(request reading.Request) audit.Event {
	event := audit.Event{Kind: audit.Reading, Reader: request.Reader, Allowed: true}
	switch log, question, query := request.Log, request.Explain, request.Audit; {
	case log != nil:
		event.Operation, event.Pipeline, event.Task, event.Principal = "log", log.Pipeline, log.Task, log.Principal
		event.Conduit = pipeline.OutputName(log.Pipeline, log.Task)
		if log.Previous {
			event.Reason = "what was printed under the label before the present one"
		}
	case question != nil:
		event.Operation, event.Pipeline, event.Task = "explain", question.Pipeline, question.Task
		event.Principal, event.Conduit = question.Principal, question.Conduit
	case query != nil:
		event.Operation, event.Task = "audit", query.Task
		event.Principal, event.Conduit = query.Principal, query.Conduit
	}
	return event
}

// answer reads what is asked.
func (m *Monitor) answer(ctx context.Context, request reading.Request) (reading.Answer, error) {
	switch {
	case request.Log != nil:
		return m.logPage(*request.Log)
	case request.Explain != nil:
		return m.explained(ctx, *request.Explain)
	}
	return m.auditPage(ctx, *request.Audit)
}

func (m *Monitor) logPage(question reading.LogQuestion) (reading.Answer, error) {
	log, err := m.readLog(question.Pipeline, question.Task,
		pipeline.Reader{Principal: question.Principal, Region: question.Region},
		pipeline.Excerpt{Previous: question.Previous, Before: question.Before, Limit: reading.MaxLogText})
	return reading.Answer{Log: &reading.LogPage{Label: log.Label, Text: log.Text, Before: log.Before}}, err
}

func (m *Monitor) explained(ctx context.Context, question reading.Question) (reading.Answer, error) {
	title := "explain"
	question.Access = cmp.Or(question.Access, "read")
	switch {
	case question.Access != "read" && question.Access != "write":
		return reading.Answer{}, api.Invalid(title, "", "access %q is neither read nor write", question.Access)
	case question.Conduit == "" || question.Principal == "" && question.Task == "":
		return reading.Answer{}, api.Invalid(title, "name a conduit, and a principal or a task", "the question is incomplete")
	}
	found, err := m.Explain(ctx, question)
	if err != nil {
		return reading.Answer{}, err
	}
	if text, err := json.Marshal(found); err != nil || len(text) > reading.MaxPage {
		return reading.Answer{}, api.Conflict(title, "ask on the member: shai explain",
			"the explanation is longer than %d KiB", reading.MaxPage>>10)
	}
	return reading.Answer{Explanation: &found}, nil
}

// auditPage returns the latest of the selected records that a page has room for.
func (m *Monitor) auditPage(ctx context.Context, question reading.AuditQuestion) (reading.Answer, error) {
	query := audit.Query{Kinds: question.Kinds, Principal: question.Principal, Conduit: question.Conduit,
		Task: question.Task, Since: question.Since, Before: question.Before,
		Limit: cmp.Or(question.Limit, reading.MaxRecords)}
	for _, kind := range query.Kinds {
		if !slices.Contains(audit.Kinds, kind) {
			remedy := "name one of: " + strings.Join(records.KindNames(), ", ")
			return reading.Answer{}, api.Invalid("read the audit log", remedy, "%q is not a kind of record", kind)
		}
	}
	if query.Limit < 0 || query.Limit > reading.MaxRecords {
		return reading.Answer{}, api.Invalid("read the audit log", "", "the limit %d is not a number from 1 to %d",
			query.Limit, reading.MaxRecords)
	}
	var found []audit.Record
	err := m.audit.Query(ctx, query, func(record audit.Record) error {
		found = append(found, record)
		return nil
	})
	if err != nil {
		return reading.Answer{}, fmt.Errorf("read the audit log: %w", err)
	}
	page, err := pageOf(found, query.Limit)
	if last := m.verified.last.Load(); last != nil {
		page.Verified, page.Fault = last.ended, last.fault
	}
	return reading.Answer{Audit: &page}, err
}

// pageOf returns the last records that a page has room for, and the page before if there may be one:
// if records have no room, or there are as many as were asked for. A record has at most some
// kilobytes, so that a page has several.
func pageOf(found []audit.Record, limit int) (reading.AuditPage, error) {
	page := reading.AuditPage{Records: []json.RawMessage{}}
	room, first := reading.MaxPage, len(found)
	for ; first > 0; first-- {
		text, err := json.Marshal(found[first-1])
		if err != nil {
			return page, err
		}
		if room -= len(text) + 1; room < 0 && first < len(found) {
			break
		}
		page.Records = append(page.Records, text)
	}
	slices.Reverse(page.Records)
	if len(found) > 0 && (first > 0 || len(found) >= limit) {
		page.Before = found[first].Sequence
	}
	return page, nil
}
