// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

const (
	logName  = "/log/access"
	document = "/open/1.txt"
)

// typedMonitor is a monitor with pipelinetest.Typed in force.
func typedMonitor(t *testing.T) (*Monitor, Options) {
	t.Helper()
	options := bareOptions(t)
	return openTyped(t, options), options
}

func openTyped(t *testing.T, options Options) *Monitor {
	t.Helper()
	m, err := Open(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if m.state().Bundle().Version == 0 {
		applyBare(t, m, pipelinetest.Typed)
	}
	return m
}

// typedSession is a session of an employee, behind a supervisor that the test plays.
type typedSession struct {
	t          *testing.T
	supervisor *pipelinetest.Supervisor
	number     uint64
	sequence   uint64
	instance   string
}

// typedSessions begins the task and sessions of employees.
func typedSessions(t *testing.T, m *Monitor, mode wire.Mode, names ...string) (sessions []*typedSession) {
	t.Helper()
	supervisor := superviseBare(t, m).Supervisor()
	for i, name := range names {
		s := &typedSession{t: t, supervisor: supervisor, number: uint64(7 + i), instance: "worker(" + name + ", de)"}
		s.event(mode, supervision.Event{Kind: supervision.EventAccepted, Reason: "de"})
		supervisor.Sessions.Receive(supervision.AskBind{Session: s.number, Principal: name, Region: "de"})
		bound := awaitRecord[supervision.Bind](t, supervisor)
		if bound.Status != 0 {
			t.Fatalf("%s may not log in: %s", name, bound.Reason)
		}
		s.event(mode, supervision.Event{Kind: supervision.EventBound, Principal: name,
			Instance: s.instance, Reason: "mispredicted"})
		sessions = append(sessions, s)
		supervisor.Since()
	}
	return sessions
}

func (s *typedSession) event(mode wire.Mode, event supervision.Event) {
	event.Session, event.Worker, event.Mode = s.number, 4711+int32(s.number), mode
	event.Peer = netip.MustParseAddr("192.0.2.1").As16()
	event.Slot = uint32(s.number - 7)
	s.supervisor.Sessions.Receive(supervision.Events{Events: []supervision.Event{event}})
}

func (s *typedSession) ask(message wire.Message) (answer wire.Message) {
	s.t.Helper()
	s.sequence++
	record, err := wire.Encode(s.sequence, message)
	if err != nil {
		s.t.Fatal(err)
	}
	s.supervisor.Since()
	s.supervisor.Sessions.Receive(supervision.AskRecord{Session: s.number, Record: record})
	sequence, answer, err := wire.Decode(awaitRecord[supervision.Relay](s.t, s.supervisor).Record, wire.TypeOpened,
		wire.TypeWritten, wire.TypeOffered, wire.TypeChosen)
	if err != nil || sequence != s.sequence {
		s.t.Fatalf("answer %d to request %d: %v", sequence, s.sequence, err)
	}
	return answer
}

// writes returns how a write ends: "" or the error's name.
func (s *typedSession) writes(conduit, content string, flags uint32) string {
	s.t.Helper()
	answer := s.ask(wire.Write{Conduit: conduit, Content: []byte(content), Flags: flags}).(wire.Written)
	if answer.Status != 0 && answer.Reason == "" {
		s.t.Errorf("%s: no reason", conduit)
	}
	return unix.ErrnoName(unix.Errno(answer.Status))
}

func (s *typedSession) opens(m *Monitor, name string) bool {
	s.t.Helper()
	id, found := m.state().ID(name)
	if !found {
		s.t.Fatalf("no conduit is called %s", name)
	}
	return s.ask(wire.Open{Conduits: []uint32{id}}).(wire.Opened).Status[0] == 0
}

// neighbour is another pipeline, with a typed conduit that anybody may write.
const neighbour = `
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: clerk}
spec: {command: [/bin/true], runtimeName: system, run: Once, taint: {name: free}, writes: [lists]}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: neighbour}
spec:
  mode: shai
  revocation: lazy
  tasks: [clerk]
  conduits:
    - name: lists
      kind: file
      type: conduit-ids
      paths: [{path: "/neighbour/**", policy: {name: free}}]
    - name: papers
      kind: file
      ingress: true
      paths: [{path: "/papers/**", policy: {name: free}}]
`

// What policies allow is not enough: a task writes the typed conduits of its own pipeline only.
func TestTypedConduitsOfOtherPipelinesAreUnknown(t *testing.T) {
	m, options := typedMonitor(t)
	applyBare(t, m, pipelinetest.Typed+neighbour)
	if err := os.MkdirAll(filepath.Join(options.Data, "neighbour"), 0o777); err != nil {
		t.Fatal(err)
	}
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	id, _ := m.state().ID(document)
	for conduit, want := range map[string]string{"/ids/bob": "", "/neighbour/list": "ENOENT"} {
		if got := bob.writes(conduit, fmt.Sprintf("%d\n", id), 0); got != want {
			t.Errorf("%s: %q, want %q", conduit, got, want)
		}
	}
}

// Whether a document of another pipeline exists is not told by what becomes of an entry about it.
func TestEntriesAreAboutDocumentsOfTheirPipeline(t *testing.T) {
	m, options := typedMonitor(t)
	if err := os.MkdirAll(filepath.Join(options.Data, "papers"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(options.Data, "papers", "secret"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	applyBare(t, m, pipelinetest.Typed+neighbour)
	if _, exists := m.state().ID("/papers/secret"); !exists {
		t.Fatal("the neighbour's document is not registered")
	}
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	for _, about := range []string{"/papers/secret", "/papers/nothing"} {
		if got := bob.writes(logName, accessEntry("bob", about, time.Now()), 0); got != "EBADMSG" {
			t.Errorf("an entry about %s: %q", about, got)
		}
	}
	expectLog(t, m, options, "")
	if got := bob.writes(logName, accessEntry("bob", document, time.Now()), 0); got != "" {
		t.Errorf("an entry about the pipeline's document: %q", got)
	}
}

func accessEntry(who, about string, when time.Time) string {
	return fmt.Sprintf("access(%q, %q, %s)\n", who, about, policy.Time(when))
}

// entriesOf returns the entries of a log as facts say them.
func entriesOf(m *Monitor, conduit string) (lines string) {
	kind := m.state().LogType(conduit)
	for _, fact := range m.state().LogEntries(conduit) {
		if fact.Offset != int64(len(lines)) {
			lines += fmt.Sprintf("(at %d)", fact.Offset)
		}
		lines += kind.Line(fact)
	}
	return lines
}

func expectLog(t *testing.T, m *Monitor, options Options, want string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(options.Data, logName))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(text) != want {
		t.Errorf("the log is\n%swant\n%s", text, want)
	}
	if got := entriesOf(m, logName); got != want {
		t.Errorf("the facts are\n%swant\n%s", got, want)
	}
}

// An employee reads a document after an entry about it, and not before. An entry that is forged
// for a colleague, dated ahead, or about nothing is refused.
func TestAccessesAreLoggedBeforeTheyHappen(t *testing.T) {
	for _, mode := range []wire.Mode{wire.ModeShai, wire.ModeDynamic} {
		t.Run(mode.String(), func(t *testing.T) {
			m, options := typedMonitor(t)
			sessions := typedSessions(t, m, mode, "bob", "eve")
			bob, eve := sessions[0], sessions[1]
			// In a dynamic mode reading is never refused, but what was read cannot leave.
			decided := mode == wire.ModeShai
			if decided && bob.opens(m, document) {
				t.Error("bob reads without an entry")
			}
			now := time.Now()
			for what, entry := range map[string]string{
				"forged for a colleague": accessEntry("eve", document, now),
				"dated ahead":            accessEntry("bob", document, now.Add(time.Hour)),
				"one of both":            accessEntry("bob", document, now) + accessEntry("eve", document, now),
			} {
				if got := bob.writes(logName, entry, 0); got != "EACCES" {
					t.Errorf("%s: %q", what, got)
				}
			}
			for what, entry := range map[string]string{
				"about no document": accessEntry("bob", "/open/the text of a document", now),
				"no entry":          "hello\n",
				"a part":            accessEntry("bob", document, now)[:20],
			} {
				if got := bob.writes(logName, entry, 0); got != "EBADMSG" {
					t.Errorf("%s: %q", what, got)
				}
			}
			expectLog(t, m, options, "")
			if decided && bob.opens(m, document) {
				t.Error("bob reads after entries that were refused")
			}
			first := accessEntry("bob", document, now)
			if got := bob.writes(logName, first, 0); got != "" {
				t.Fatalf("a proper entry: %s", got)
			}
			expectLog(t, m, options, first)
			if !bob.opens(m, document) {
				t.Error("bob does not read after his entry")
			}
			if decided && eve.opens(m, document) {
				t.Error("eve reads after bob's entry")
			}
			second := accessEntry("eve", document, now)
			if got := eve.writes(logName, second, 0); got != "" {
				t.Fatalf("eve's entry: %s", got)
			}
			if got := eve.writes(logName, second, wire.WriteReplace); got != "EINVAL" {
				t.Errorf("replacing the log: %q", got)
			}
			expectLog(t, m, options, first+second)
			if !eve.opens(m, document) {
				t.Error("eve does not read after her entry")
			}
		})
	}
}

// Data leave a taint by content of a known form only: numbers of documents that exist
// (ONLY_CND_IDS), topics of a list. Lengths are the file's own.
func TestContentDecides(t *testing.T) {
	m, options := typedMonitor(t)
	bob := typedSessions(t, m, wire.ModeShai, "bob")[0]
	id, _ := m.state().ID(document)
	ids := fmt.Sprintf("%d\n", id)
	for _, test := range []struct {
		conduit, content string
		flags            uint32
		want             string // the error
		contains         string // the file then
	}{
		{"/ids/bob", ids, 0, "", ids},
		{"/ids/bob", ids + ids, 0, "", ids + ids + ids},
		{"/ids/bob", ids, wire.WriteReplace, "", ids},
		{"/ids/bob", "999999\n", 0, "EACCES", ids},              // no such document
		{"/ids/bob", ids + "999999\n", 0, "EACCES", ids},        // one of them
		{"/ids/bob", "text of a document\n", 0, "EBADMSG", ids}, // no number
		{"/ids/bob", strings.TrimSuffix(ids, "\n"), 0, "EBADMSG", ids},
		{"/ids/bob", "", 0, "EINVAL", ids},
		{"/ids/bob", "", wire.WriteReplace, "", ""},
		{"/ids/eve", ids, 0, "EACCES", ""}, // she may read it, and he may not write it
		{"/ids/short", strings.Repeat(ids, 40/len(ids)), 0, "", strings.Repeat(ids, 40/len(ids))},
		{"/ids/short", ids, 0, "EACCES", strings.Repeat(ids, 40/len(ids))}, // longer than 40 bytes
		{"/ids/short", ids, wire.WriteReplace, "", ids},
		{"/interests/bob", "topic(\"news\")\n", 0, "", "topic(\"news\")\n"},
		{"/interests/bob", "topic(\"sports\")\n", wire.WriteReplace, "", "topic(\"sports\")\n"},
		{"/interests/bob", "topic(\"what bob asked for\")\n", 0, "EACCES", "topic(\"sports\")\n"},
		{"/interests/bob", ids, 0, "EBADMSG", "topic(\"sports\")\n"},
		{"/open/1.txt", ids, 0, "ENOENT", "/open/1.txt"}, // no type
		{"/nothing", ids, 0, "ENOENT", ""},
		{"/ids/../open/1.txt", ids, 0, "ENOENT", "/open/1.txt"},
		{"/ids//bob", ids, 0, "ENOENT", ""},
		{"/ids/.shai-new-bob", ids, 0, "ENOENT", ""},
		{"", ids, 0, "ENOENT", ""},
	} {
		if got := bob.writes(test.conduit, test.content, test.flags); got != test.want {
			t.Errorf("%s %.40q flags %d: %q, want %q", test.conduit, test.content, test.flags, got, test.want)
		}
		text, err := os.ReadFile(filepath.Join(options.Data, test.conduit))
		if err != nil && !os.IsNotExist(err) && test.conduit != "" {
			t.Fatal(err)
		}
		if string(text) != test.contains {
			t.Errorf("%s %.40q: it contains %q, want %q", test.conduit, test.content, text, test.contains)
		}
	}
}
