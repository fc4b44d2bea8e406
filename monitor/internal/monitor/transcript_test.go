// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into the transcripts")

// TestTranscripts plays testdata/transcripts (see the README there) and compares what
// happens with what they say.
func TestTranscripts(t *testing.T) {
	playFolder(t, "testdata/transcripts", func(t *testing.T, transcript string) string {
		s := newStack(t)
		s.options.NoLearning = true // what is learnt comes into force at no moment that a transcript could show
		return play(s, transcript)
	})
}

// playFolder plays the transcripts of a folder, and compares what happens with what they say.
func playFolder(t *testing.T, folder string, play func(t *testing.T, transcript string) string) {
	files, err := filepath.Glob(folder + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *rewrite {
				if !isReference {
					t.Fatal("transcripts are written on the system whose own outcomes they have")
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if difference := cmp.Diff(asComparedHere(string(text)), asComparedHere(got)); difference != "" {
				t.Errorf("%s (run with -rewrite to accept):\n%s", file, difference)
			}
		})
	}
}

// play carries out a transcript and renders it again, with the results indented under
// each line.
func play(s *stack, transcript string) string {
	p := &player{stack: s, users: map[string]*user{}, counts: map[string]uint64{}}
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line)
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for answer := range strings.Lines(p.do(line)) {
			fmt.Fprintf(&out, "  %s\n", strings.TrimSuffix(answer, "\n"))
		}
		if s.t.Failed() {
			s.t.Logf("at: %s", line)
			break
		}
	}
	return out.String()
}

// player is the state of one transcript.
type player struct {
	*stack
	users       map[string]*user
	descriptors []string          // numbers of them, D1, D2, … in the order in which they were seen
	counts      map[string]uint64 // interceptions that have been shown
}

// do carries out one line and returns what happened.
func (p *player) do(line string) string {
	p.t.Helper()
	if name, command, found := strings.Cut(line, ": "); found && regexp.MustCompile(`^s\d+$`).MatchString(name) {
		answer := p.inSession(name, command)
		if answer == connectionEnded {
			p.awaitEnd(p.users[name])
		}
		if strings.HasPrefix(command, "transfer ") { // it may be asked about later: the next line shows it
			return answer + "\n"
		}
		return p.named(answer) + p.intercepted() + "\n"
	}
	word, rest, _ := strings.Cut(line, " ")
	if action := actions[word]; action != nil {
		return action(p, rest)
	}
	p.t.Fatalf("transcript: %q is no command", line)
	return ""
}

// intercepted shows the interceptions since the last call.
func (p *player) intercepted() string {
	now := p.interceptions()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(now)) {
		if n := now[kind] - p.counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", kind, n))
		}
	}
	p.counts = now
	if len(parts) == 0 {
		return ""
	}
	return "  [" + strings.Join(parts, ", ") + "]"
}

// inSession carries out one line of a user.
func (p *player) inSession(name, command string) string {
	p.t.Helper()
	word, rest, _ := strings.Cut(command, " ")
	u := p.users[name]
	if u == nil && word != "connect" {
		p.t.Fatalf("transcript: %s is not connected", name)
	}
	switch word {
	case "connect":
		return p.connects(name, strings.TrimPrefix(rest, "from "))
	case "authenticate":
		principal, key, other := strings.Cut(rest, " with ")
		if !other {
			key = principal
		}
		return ended(u.authenticate(principal, strings.TrimSuffix(key, "'s key")))
	case "transfer":
		return p.transfer(u, rest)
	case "open", "read":
		return ended(u.say(word + " " + p.numbered(rest)))
	case "native", "beneath":
		return differs(ended(u.say(word + " " + p.viewed(word, rest))))
	case "descriptors":
		return p.describes(ended(u.say(command)))
	case "raw", "again":
		return differs(ended(u.say(command)))
	case "quit", "crash", "linger", "ended?", "leave":
		return p.leaves(name, word)
	}
	return ended(u.say(command))
}

const connectionEnded = "the connection has ended"

// awaitEnd waits until the monitor, which is done with a session a little later than
// its user, has freed the session's slot, and a worker waits in each free one.
func (p *player) awaitEnd(u *user) {
	waiting.Until(p.t, "the session is over", func() bool {
		return p.sessionIn(u.slot) == nil
	})
	p.awaitIdle()
}

// ended shows the end of a session as an answer.
func ended(answer string, err error) string {
	if errors.Is(err, io.EOF) {
		return connectionEnded
	}
	if err != nil {
		return err.Error()
	}
	return answer
}

func (p *player) connects(name, address string) string {
	p.t.Helper()
	u, err := p.connect(address)
	p.must(err)
	p.users[name] = u
	// Processes are the system's own matter, and so stay out of the transcript.
	answer, process, found := strings.Cut(u.must("session"), " process ")
	if _, err := fmt.Sscan(process, &u.process); !found || err != nil {
		p.t.Fatalf("a session says %q and process %q", answer, process)
	}
	_, slot, _ := strings.Cut(answer, " slot ")
	u.slot, err = strconv.Atoi(slot)
	p.must(err)
	return strings.Replace(answer, "session region  ", "session region unknown ", 1)
}

// describes replaces the number of descriptors that a worker prints by a name: the number
// depends on the system; it must be the same again.
func (p *player) describes(answer string) string {
	number, ok := strings.CutPrefix(answer, "descriptors ")
	if !ok {
		return answer
	}
	at := slices.Index(p.descriptors, number)
	if at < 0 {
		at, p.descriptors = len(p.descriptors), append(p.descriptors, number)
	}
	return fmt.Sprintf("descriptors D%d", at+1)
}

// leaves ends a session in one way or another and waits until nothing is left of it.
func (p *player) leaves(name, how string) string {
	u := p.users[name]
	switch how {
	case "leave":
		u.connection.Close()
	case "quit", "crash", "linger":
		_, _ = u.say(how)
	case "ended?":
		answer, err := u.say("mode")
		if err == nil {
			return "no: " + answer
		}
		delete(p.users, name)
		p.awaitEnd(u) // so that the next connection finds the slot free
		return "yes"
	}
	delete(p.users, name)
	waiting.Until(p.t, "the slot is another's", func() bool { return p.sessionIn(u.slot) == nil })
	waiting.Until(p.t, "nothing of the session is left", func() bool { return hasLeft(u.process) })
	p.awaitIdle()
	return "the session is over"
}

// transfer plays the search engine: it writes a transfer into the channel of the
// user's slot.
func (p *player) transfer(u *user, arguments string) string {
	p.t.Helper()
	words := strings.Fields(arguments)
	query, err := strconv.ParseUint(words[0], 10, 32)
	p.must(err)
	var conduits []uint32
	for _, name := range words[1:] {
		id, _ := strconv.ParseUint(p.numbered(name), 10, 32)
		conduits = append(conduits, uint32(id))
	}
	session := p.sessionIn(u.slot)
	if session == nil {
		return "no session"
	}
	p.writeTransfer(session.Slot, session.Mode, u.firstQuery()+uint32(query), conduits...)
	return "written"
}

// numbered puts conduit numbers in the place of names; what is a number already stays.
func (p *player) numbered(names string) string {
	words := strings.Fields(names)
	for i, word := range words {
		if strings.HasPrefix(word, "/") {
			words[i] = fmt.Sprint(p.id(word))
		}
	}
	return strings.Join(words, " ")
}

// viewed puts a place in the view where a path says "view of NAME".
func (p *player) viewed(how, path string) string {
	name, ok := strings.CutPrefix(path, "view of ")
	if !ok {
		return path
	}
	id := p.id(name)
	inside := fmt.Sprintf("%d/%d/%d", p.monitor.state().ClassOf(id), id>>10, id)
	if how == "beneath" {
		return inside
	}
	return "/shai/view" + "/" + inside
}

var openedNumbers = regexp.MustCompile(`^opened(( \d+)*)`)

// named puts names where numbers differ from run to run.
func (p *player) named(answer string) string {
	return openedNumbers.ReplaceAllStringFunc(answer, func(list string) string {
		names := []string{"opened"}
		for _, number := range strings.Fields(list)[1:] {
			id, _ := strconv.ParseUint(number, 10, 32)
			name, _ := p.monitor.state().Name(uint32(id))
			names = append(names, name)
		}
		return strings.Join(names, " ")
	})
}

// showRecord is an audit record without what differs from run to run.
func (p *player) showRecord(r audit.Record) string {
	var out strings.Builder
	allowed := "refused"
	if r.Allowed {
		allowed = "allowed"
	}
	if ofSystemCall(r) {
		out.WriteString("~ ")
	}
	fmt.Fprintf(&out, "%s %s", r.Kind, r.Operation)
	for _, part := range []struct{ name, text string }{{"", r.Instance}, {"for ", r.Principal}, {"", r.Conduit}} {
		if part.text != "" && !strings.Contains(out.String(), part.text) {
			out.WriteString(" " + part.name + part.text)
		}
	}
	fmt.Fprintf(&out, ": %s", allowed)
	if r.Reason != "" {
		fmt.Fprintf(&out, ", %s", regexp.MustCompile(`in [\d.]+[µm]?s|[0-9a-f]{64}`).ReplaceAllString(r.Reason, "<…>"))
	}
	for _, fact := range r.Facts {
		fmt.Fprintf(&out, "\n    %s", fact)
	}
	return p.named(times.ReplaceAllString(out.String(), "<time>")) + "\n"
}

// parsedFact reads: "friends/bob" says friend("alice").
func (p *player) parsedFact(text string) api.Fact {
	p.t.Helper()
	parts := regexp.MustCompile(`^"([^"]+)" says (\w+)\((.*)\)$`).FindStringSubmatch(text)
	if parts == nil {
		p.t.Fatalf(`transcript: %q is not of the form "conduit" says relation("value")`, text)
	}
	var tuple []string
	for _, value := range strings.Split(parts[3], ", ") {
		tuple = append(tuple, strings.Trim(value, `"`))
	}
	return apiFact(parts[1], parts[2], tuple...)
}
