// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
)

// stoppedProcess stands for a process that waits for an answer.
type stoppedProcess struct {
	open      []sandbox.Handle
	wrong     error  // about examining it
	examining func() // called while it is examined
	placing   func() // called while something is placed
	fails     int    // the number at which nothing can be placed
	placed    []int
}

func (s *stoppedProcess) Writable() ([]sandbox.Handle, error) {
	if s.examining != nil {
		s.examining()
	}
	return s.open, s.wrong
}

func (s *stoppedProcess) Place(files map[int]*os.File) error {
	if s.placing != nil {
		s.placing()
	}
	numbers := slices.Sorted(maps.Keys(files))
	if slices.Contains(numbers, s.fails) {
		return errors.New("it is gone")
	}
	s.placed = append(s.placed, numbers...)
	return nil
}

// drafting is the task of pipeline "raising" that may raise its taint, as if it ran.
func drafting(t *testing.T, changes ...string) (*fixture, *acting) {
	t.Helper()
	f := newFixture(t, "raising", SessionLimits{})
	f.document("/inbox/1.txt")
	f.apply(strings.NewReplacer(changes...).Replace(pipelinetest.Raising))
	return f, f.tasks["drafting"].starts()
}

// handle is a file of the data directory that is open for writing.
func (f *fixture) handle(number int, name string) sandbox.Handle {
	return sandbox.Handle{Number: number, Path: filepath.Join(f.services.Options.Data, name)}
}

const (
	printedEnd = wire.FDPipe     // of the pipe that everybody may read
	answersEnd = wire.FDPipe + 1 // of task personal
)

// What stands against a raise decides what becomes of it, and what of the process's descriptors.
func TestRaise(t *testing.T) {
	for _, test := range []struct {
		name    string
		process stoppedProcess
		files   map[int]string // open for writing
		copies  map[int]int    // of pipes and channels that it was given
		flags   uint32
		status  unix.Errno
		reason  string
		placed  []int
		becomes string
	}{
		{name: "closes what it may not use", flags: wire.RegisterClose, files: map[int]string{170: "/public/a"},
			placed: []int{printedEnd, 170, answersEnd}, becomes: "personal"},
		{name: "keeps what it may use", flags: wire.RegisterClose, files: map[int]string{170: "/letters/a"},
			placed: []int{printedEnd, answersEnd}, becomes: "personal"},
		{name: "is asked to close nothing", status: unix.EBUSY, reason: "printed (descriptor 32)", becomes: "drafting"},
		{name: "no conduit", flags: wire.RegisterClose, files: map[int]string{170: "/elsewhere"},
			placed: []int{printedEnd, 170, answersEnd}, becomes: "personal"},
		{name: "a copy of what it may not use", flags: wire.RegisterClose, copies: map[int]int{170: printedEnd},
			placed: []int{printedEnd, 170, answersEnd}, becomes: "personal"},
		{name: "copies that it may use", copies: map[int]int{170: wire.FDChannel}, flags: wire.RegisterClose,
			placed: []int{printedEnd, answersEnd}, becomes: "personal"},
		{name: "a mapping", flags: wire.RegisterClose, files: map[int]string{-1: "/public/a"}, status: unix.EBUSY,
			reason: "unmap it): mapping of /public/a", becomes: "drafting"},
		{name: "a mapping that it may use", flags: wire.RegisterClose, files: map[int]string{-1: "/letters/a"},
			placed: []int{printedEnd, answersEnd}, becomes: "personal"},
		{name: "threads", process: stoppedProcess{wrong: sandbox.ErrThreads}, flags: wire.RegisterClose,
			status: unix.EBUSY, reason: "other threads", becomes: "drafting"},
		{name: "too much to examine", process: stoppedProcess{wrong: sandbox.ErrTooMany}, flags: wire.RegisterClose,
			status: unix.EBUSY, reason: "more than 16384 descriptors or mappings", becomes: "drafting"},
		{name: "what cannot be closed", process: stoppedProcess{fails: printedEnd}, flags: wire.RegisterClose,
			status: unix.EACCES, reason: "close printed (descriptor 32)", becomes: "drafting"},
		{name: "what cannot be given", process: stoppedProcess{fails: answersEnd}, flags: wire.RegisterClose,
			status: unix.EACCES, reason: "without its pipes", placed: []int{printedEnd}, becomes: "personal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, a := drafting(t)
			process := test.process
			for number, name := range test.files {
				process.open = append(process.open, f.handle(number, name))
			}
			for number, given := range test.copies {
				process.open = append(process.open, sandbox.Handle{Number: number, Path: "pipe", Given: given})
			}
			answer := a.register(wire.Register{Instance: "personal", Flags: test.flags}, &process)
			if answer.Status != int32(test.status) || !strings.Contains(answer.Reason, test.reason) {
				t.Errorf("status %v, %q", unix.Errno(answer.Status), answer.Reason)
			}
			if !slices.Equal(process.placed, test.placed) {
				t.Errorf("placed at %v, want %v", process.placed, test.placed)
			}
			if is := a.role.Load().name; is != test.becomes || a.task.role().subject.Instance != is {
				t.Errorf("it is %s, want %s", is, test.becomes)
			}
			if said := f.recorded("from drafting to personal; closed: "); said != (test.becomes == "personal") {
				t.Errorf("the raise is recorded: %v", said)
			}
		})
	}
}

// Facts and bundle stay the same from the decisions until the process has what it may have, and
// may change while the process, which may have much open, is examined.
func TestRaiseIsOneStep(t *testing.T) {
	f, a := drafting(t)
	canChange := func() bool {
		if f.services.Binding.TryLock() {
			f.services.Binding.Unlock()
			return true
		}
		return false
	}
	examined, placed := false, false
	process := &stoppedProcess{
		examining: func() {
			examined = true
			if !canChange() {
				t.Error("the state cannot change while the process is examined")
			}
		},
		placing: func() {
			placed = true
			if canChange() {
				t.Error("the state can change between the decisions and their effect")
			}
		},
	}
	a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose}, process)
	if !examined || !placed || !canChange() {
		t.Errorf("examined: %v, placed: %v, or the state can never change again", examined, placed)
	}
}

// A file is decided on once, whatever the number of descriptors: each decision may be recorded.
func TestRaiseDecidesOnceOnAFile(t *testing.T) {
	const alices = `sKeyIs(\"alice\"). update :- true."`
	f, a := drafting(t, alices, alices+", mode: Audit")
	process := &stoppedProcess{}
	for number := range 1000 {
		process.open = append(process.open, f.handle(170+number, "/public/"+strconv.Itoa(number%2)))
	}
	f.records()
	answer := a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose}, process)
	if answer.Status != 0 {
		t.Fatalf("status %v, %q", unix.Errno(answer.Status), answer.Reason)
	}
	denials := 0
	for _, r := range f.records() {
		if r.Operation == "write" && strings.HasPrefix(r.Conduit, "/public/") {
			denials++
		}
	}
	if denials != 2 {
		t.Errorf("%d decisions on two files were recorded", denials)
	}
}

// A raise that cannot be recorded is refused.
func TestUnrecordedRaiseIsRefused(t *testing.T) {
	f, a := drafting(t)
	log := f.services.Audit
	defer func() { f.services.Audit = log }()
	closed, err := audit.Open(audit.Options{Directory: filepath.Join(t.TempDir(), "audit"), RefuseUnrecorded: true})
	f.must(err)
	f.must(closed.Close())
	f.services.Audit = closed
	answer := a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose}, &stoppedProcess{})
	if answer.Status == 0 || a.role.Load().name != "drafting" ||
		!strings.Contains(answer.Reason, "cannot be recorded") {
		t.Errorf("status %v, %q", unix.Errno(answer.Status), answer.Reason)
	}
}

// What the kernel lets the task write since its start cannot be taken back. If facts have
// changed so that the new taint may not write it, the task keeps its taint.
func TestNativeWritesAreDecidedOnAgain(t *testing.T) {
	for directory, allowed := range map[string]bool{"/letters": true, "/public": false} {
		f, a := drafting(t)
		a.writes = append(a.writes, heldDirectory{directory, f.services.directoryConduit(directory)})
		answer := a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose}, &stoppedProcess{})
		if (answer.Status == 0) != allowed || !allowed && !strings.Contains(answer.Reason, "start the task again") {
			t.Errorf("%s: status %v, %q", directory, unix.Errno(answer.Status), answer.Reason)
		}
	}
}

// Where nothing stops the process, its taint is not raised; in mode baseline nothing is examined.
func TestRaiseWithoutAStop(t *testing.T) {
	_, a := drafting(t)
	answer := a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose}, nil)
	if unix.Errno(answer.Status) != unix.EOPNOTSUPP || a.role.Load().name != "drafting" {
		t.Errorf("status %v, %q", unix.Errno(answer.Status), answer.Reason)
	}
	f := newFixture(t, "raising", SessionLimits{})
	f.apply(strings.Replace(pipelinetest.Raising, "mode: shai", "mode: baseline", 1))
	a = f.tasks["drafting"].newActing()
	if answer := a.register(wire.Register{Instance: "personal"}, nil); answer.Status != 0 || len(answer.Capabilities) == 0 {
		t.Errorf("in mode baseline: status %v, %q", unix.Errno(answer.Status), answer.Reason)
	}
}

// The table of a task that may raise its taint says that the monitor decides on what the kernel
// refuses; that of another task does not.
func TestAskedDirectories(t *testing.T) {
	f, a := drafting(t)
	for _, capability := range a.register(wire.Register{Instance: "drafting"}, nil).Capabilities {
		if asks := capability.Rights&wire.RightAsk != 0; asks != (capability.Kind == wire.KindDirectory) {
			t.Errorf("%s: asks %v", capability.Prefix, asks)
		}
	}
	printer := f.tasks["printer"].newActing()
	for _, capability := range printer.register(wire.Register{Instance: "printer"}, nil).Capabilities {
		if capability.Rights&wire.RightAsk != 0 {
			t.Errorf("%s of a task that raises nothing asks", capability.Prefix)
		}
	}
}

// In mode dynamic the running taint knows what the task has open after the raise, and no more:
// what was closed forbids no read. What was read beyond the first taint is not forgotten.
func TestRunningTaintIsRaised(t *testing.T) {
	f, a := drafting(t)
	f.must(f.SwitchTo(wire.ModeDynamic))
	self := os.Getpid()
	opens := func(name string, flags int) bool {
		return f.opens(pipelinetest.NewTask("drafting", self), self, name, flags).Errno == 0
	}
	f.document("/public/a")
	if !opens("/public/a", unix.O_WRONLY) || opens("/inbox/1.txt", unix.O_RDONLY) {
		t.Error("it reads what the open file does not keep")
	}
	if answer := a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose},
		&stoppedProcess{open: []sandbox.Handle{f.handle(170, "/public/a")}}); answer.Status != 0 {
		t.Fatalf("status %v, %q", unix.Errno(answer.Status), answer.Reason)
	}
	if !opens("/inbox/1.txt", unix.O_RDONLY) || opens("/public/a", unix.O_WRONLY) {
		t.Error("after the raise it does not read, or writes what does not keep its taint")
	}
	if label := f.tasks["drafting"].acting.Load().outputLabel(); !strings.Contains(label.String(), "alices") {
		t.Errorf("what it prints is under %s", label)
	}
}

// What the task has read forbids a raise that would give it a pipe that does not keep it: no
// write to the pipe could be refused any more.
func TestRaiseKeepsWhatWasRead(t *testing.T) {
	for name, allowed := range map[string]bool{"/inbox/1.txt": true, "/attic/1.txt": false} {
		for _, then := range []wire.Mode{wire.ModeDynamic, wire.ModeShai} {
			f, a := drafting(t, "writes: [public, letters, attic, printed, told]", "writes: [public, letters, attic]",
				"from: drafting, to: printer, policy: {name: open}", "from: equal, to: printer, policy: {name: alices}",
				"from: drafting", "from: equal", "{name: equal}\nspec:\n", "{name: equal}\nspec:\n  writes: [printed, told]\n")
			f.document("/attic/1.txt")
			f.must(f.SwitchTo(wire.ModeDynamic))
			self := os.Getpid()
			if v := f.opens(pipelinetest.NewTask("drafting", self), self, name, unix.O_RDONLY); v.Errno != 0 {
				t.Fatalf("%s: %+v", name, v)
			}
			f.must(f.SwitchTo(then))
			process := &stoppedProcess{}
			answer := a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose}, process)
			const why = "raising/answers/0 does not keep"
			if (answer.Status == 0) != allowed || !allowed && !strings.Contains(answer.Reason, why) {
				t.Errorf("%s, mode %s: status %v, %q", name, then, unix.Errno(answer.Status), answer.Reason)
			}
			if placed := len(process.placed) > 0; placed != allowed {
				t.Errorf("%s, mode %s: it has the pipe: %v", name, then, placed)
			}
		}
	}
}

// staffPolicy is a policy that depends on facts. It comes before task drafting.
const (
	staffPolicy = `kind: Policy
metadata: {name: staff}
spec: {text: "read :- sKeyIs(P), \"staff\" says member(P). update :- true."}
---
apiVersion: shai.dev/v1alpha1
`
	beforeDrafting = "kind: Task\nmetadata: {name: drafting}"
)

// A fact by which the new taint keeps the old one may go: what was read before the raise stays
// under the old one, too.
func TestRaisedTaintKeepsTheFormerOne(t *testing.T) {
	member := facts(fact("staff", "member", "alice"))
	f, a := drafting(t, beforeDrafting, staffPolicy+beforeDrafting, "taint: {name: open}", "taint: {name: staff}")
	register := func() wire.Registered {
		return a.register(wire.Register{Instance: "personal", Flags: wire.RegisterClose}, &stoppedProcess{})
	}
	if answer := register(); answer.Status == 0 {
		t.Error("raised without the fact")
	}
	f.change(nil, member)
	if answer := register(); answer.Status != 0 {
		t.Fatalf("status %v, %q", unix.Errno(answer.Status), answer.Reason)
	}
	f.document("/letters/a")
	writes := func() bool {
		self := os.Getpid()
		return f.opens(pipelinetest.NewTask("drafting", self), self, "/letters/a", unix.O_WRONLY).Errno == 0
	}
	if !writes() {
		t.Error("it may not write what keeps both taints")
	}
	f.change(member, nil)
	if writes() {
		t.Error("without the fact it writes to alice what only the staff may read")
	}
	if label := f.tasks["drafting"].acting.Load().outputLabel(); !strings.Contains(label.String(), "staff") {
		t.Errorf("what it prints is under %s", label)
	}
}

// Nobody sees when a pipe is read. Its own label counts, besides the declared taint, from the
// start or the raise on: a fact by which that keeps the label may go.
func TestPipesThatAreReadCount(t *testing.T) {
	member := facts(fact("staff", "member", "alice"))
	for reader, changes := range map[string][]string{
		"personal": {"reads: [inbox, letters]", "reads: [inbox, letters, orders]"},
		"drafting": {"reads: [news]", "reads: [news, orders]", "taint: {name: open}", "taint: {name: alices}"},
	} {
		f, a := drafting(t, append(changes, beforeDrafting, staffPolicy+beforeDrafting,
			"reads: [printed, told, answers]", "reads: [printed, told, answers]\n  writes: [orders]",
			"    - {name: answers,", "    - {name: orders, kind: pipe, from: printer, to: "+reader+
				", policy: {name: staff}}\n    - {name: answers,")...)
		f.change(nil, member)
		f.must(f.SwitchTo(wire.ModeDynamic))
		if reader == "personal" {
			answer := a.register(wire.Register{Instance: reader, Flags: wire.RegisterClose}, &stoppedProcess{})
			if answer.Status != 0 {
				t.Fatalf("status %v, %q", unix.Errno(answer.Status), answer.Reason)
			}
		}
		f.document("/letters/a")
		for _, allowed := range []bool{true, false} {
			self := os.Getpid()
			v := f.opens(pipelinetest.NewTask("drafting", self), self, "/letters/a", unix.O_WRONLY)
			if (v.Errno == 0) != allowed {
				t.Errorf("%s: %+v", reader, v)
			}
			f.change(member, nil)
		}
	}
}
