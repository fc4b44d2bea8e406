// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/reading"
)

// read asks for a page as a user of Kubernetes does.
func (s *stack) read(request reading.Request) (reading.Answer, error) {
	s.t.Helper()
	key, err := reading.NewKey()
	s.must(err)
	request.Reader, request.Recipient = "olga@example.org", key.Recipient()
	sealed, err := s.monitor.Read(s.t.Context(), request)
	if err != nil {
		return reading.Answer{}, err
	}
	answer, err := key.Open(sealed.Sealed)
	s.must(err)
	return answer, nil
}

func (s *stack) answered(request reading.Request) reading.Answer {
	s.t.Helper()
	answer, err := s.read(request)
	s.must(err)
	return answer
}

var clerksLog = reading.LogQuestion{Pipeline: "office", Task: "clerk"}

// Each reading is recorded with its reader, before it is answered.
func TestReadingsAreRecorded(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.work()
	s.records()
	log := s.answered(reading.Request{Log: &clerksLog})
	if log.Log == nil || bytes.Count(log.Log.Text, []byte("\n")) != 1 {
		t.Errorf("%+v", log)
	}
	asBob := clerksLog
	asBob.Principal, asBob.Region = "bob", "de"
	if refused := s.answered(reading.Request{Log: &asBob}); refused.Log != nil && refused.Log.Text != nil ||
		!strings.Contains(refused.Refusal, "as an administrator") {
		t.Errorf("as bob: %+v", refused)
	}
	question := reading.Question{Pipeline: "office", Task: "clerk", Conduit: "/nowhere"}
	if found := s.answered(reading.Request{Explain: &question}); found.Explanation == nil && found.Refusal == "" {
		t.Errorf("%+v", found)
	}
	records := s.answered(reading.Request{Audit: &reading.AuditQuestion{Kinds: []audit.Kind{audit.Reading}}})
	var got []string
	for _, text := range records.Audit.Records {
		var record audit.Record
		s.must(json.Unmarshal(text, &record))
		got = append(got, fmt.Sprintf("%s %s %s %s", record.Reader, record.Operation, record.Principal, record.Conduit))
	}
	want := `olga@example.org log  output:office/clerk
olga@example.org log bob output:office/clerk
olga@example.org explain  /nowhere
olga@example.org audit  `
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// A reading that cannot be recorded is refused, whatever it asks for.
func TestUnrecordedReadingsAreRefused(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.must(s.monitor.audit.Close())
	for name, request := range map[string]reading.Request{
		"log":     {Log: &clerksLog},
		"explain": {Explain: &reading.Question{Pipeline: "office", Task: "clerk", Conduit: "/x"}},
		"audit":   {Audit: &reading.AuditQuestion{}},
	} {
		_, err := s.read(request)
		var problem *api.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable ||
			!strings.Contains(problem.Detail, "cannot be recorded") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var err error
	s.monitor.audit, err = audit.Open(audit.Options{Directory: s.auditDirectory(), RefuseUnrecorded: true})
	s.must(err)
	s.monitor.services.Audit = s.monitor.audit
}

// Nobody but the reader can open an answer, and what is wrong with a request is said in clear.
func TestReadingsAreSealed(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.work()
	mine, err := reading.NewKey()
	s.must(err)
	others, err := reading.NewKey()
	s.must(err)
	request := reading.Request{Reader: "olga", Recipient: mine.Recipient(), Log: &clerksLog}
	sealed, err := s.monitor.Read(t.Context(), request)
	s.must(err)
	if _, err := others.Open(sealed.Sealed); !errors.Is(err, reading.ErrNotOpened) {
		t.Errorf("with another key: %v", err)
	}
	plain, err := mine.Open(sealed.Sealed)
	if err != nil || plain.Log == nil || bytes.Contains(sealed.Sealed, plain.Log.Text) {
		t.Errorf("%+v, %v", plain, err)
	}
	sealed.Sealed[len(sealed.Sealed)-1] ^= 1
	if _, err := mine.Open(sealed.Sealed); !errors.Is(err, reading.ErrNotOpened) {
		t.Errorf("changed: %v", err)
	}
	for name, bad := range map[string]reading.Request{
		"no reader":  {Recipient: mine.Recipient(), Log: &clerksLog},
		"no key":     {Reader: "olga", Log: &clerksLog},
		"no request": {Reader: "olga", Recipient: mine.Recipient()},
		"two":        {Reader: "olga", Recipient: mine.Recipient(), Log: &clerksLog, Audit: &reading.AuditQuestion{}},
	} {
		_, err := s.monitor.Read(t.Context(), bad)
		var problem *api.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The pages of the audit log, from its end to its beginning, are all of its records.
func TestPagesOfTheAuditLog(t *testing.T) {
	s := newStack(t)
	s.open()
	for i := range 600 {
		s.must(s.monitor.audit.Append(audit.Event{Kind: audit.Decision, Operation: "read", Allowed: true,
			Conduit: fmt.Sprintf("/corpus/%d/%s", i, strings.Repeat("x", 900))}))
	}
	want, pages := len(s.records()), 0
	seen := map[uint64]bool{}
	question := reading.AuditQuestion{Kinds: []audit.Kind{audit.Decision}}
	for ; pages == 0 || question.Before > 0; pages++ {
		page := s.answered(reading.Request{Audit: &question}).Audit
		size := 0
		for _, text := range page.Records {
			var record audit.Record
			s.must(json.Unmarshal(text, &record))
			if seen[record.Sequence] {
				t.Fatalf("record %d comes twice", record.Sequence)
			}
			seen[record.Sequence] = true
			size += len(text)
		}
		if size > reading.MaxPage {
			t.Errorf("a page has %d bytes", size)
		}
		question.Before = page.Before
	}
	if len(seen) != 600 || pages < 2 || want < 600 {
		t.Errorf("%d records in %d pages", len(seen), pages)
	}
}

// A long log is read in pages, and the log of the label before stays readable for administrators.
func TestPagesOfALog(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.work()
	path := s.logsOf("office/clerk")[0]
	long := strings.Repeat("a line that the clerk has printed\n", 20_000)
	s.must(os.WriteFile(path, []byte(long), 0o600))
	question, text := clerksLog, ""
	for {
		page := s.answered(reading.Request{Log: &question}).Log
		if len(page.Text) > reading.MaxLogText {
			t.Errorf("a page has %d bytes", len(page.Text))
		}
		text = string(page.Text) + text
		if question.Before = page.Before; question.Before == "" {
			break
		}
	}
	if text != long {
		t.Errorf("%d bytes instead of %d", len(text), len(long))
	}
	s.employ("bob", "cKindIs(descriptor)", "shai")
	s.work()
	previous := clerksLog
	previous.Previous = true
	if page := s.answered(reading.Request{Log: &previous}).Log; !strings.HasPrefix(page.Label, "unknown") ||
		!strings.HasSuffix(long, string(page.Text)) || len(page.Text) == 0 {
		t.Errorf("%q, %d bytes", page.Label, len(page.Text))
	}
	previous.Principal, previous.Region = "alice", "de"
	if answer := s.answered(reading.Request{Log: &previous}); answer.Refusal == "" {
		t.Error("its label is unknown, and alice reads it")
	}
}
