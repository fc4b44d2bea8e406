// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// Sys-E's own front end serves two users one after the other on one slot; this test
// is its clients and its search engine, which answers with what it should not.

// useFrontEnd puts the front end in the probe's place.
func (s *stack) useFrontEnd() {
	s.t.Helper()
	folder, err := provideFrontEnd()
	if errors.Is(err, fs.ErrNotExist) {
		s.t.Skipf("there is no front end here: %v", err)
	}
	s.must(err)
	s.options.Define["FRONTEND"] = folder
	s.options.Runtimes["frontend"] = append([]string{folder}, s.options.Runtimes["probe"]...)
	old := "  command: [$(PROBE)/probe_worker]\n  runtimeName: probe\n"
	text := s.manifests["pipeline.yaml"]
	if !strings.Contains(text, old) {
		s.t.Fatalf("the pipeline has no %q any more", old)
	}
	text = strings.Replace(text, old, `  command: [$(FRONTEND)/syse-frontend, --workers, "3", --advertisements, $(FRONTEND)/advertisements.txt, --page, $(FRONTEND)/page.html]
  runtimeName: frontend
`, 1)
	text = strings.Replace(text, "histories, results]", "histories, interests, results]", 1)
	text = strings.Replace(text, "write: [LPUSH]", "write: [LPUSH, LTRIM]", 1)
	s.manifests["pipeline.yaml"] = strings.Replace(text, "    - name: queries\n", `    - name: interests
      kind: tuple
      access: {read: [GET]}
      paths:
        - {path: "topics:{user}", policy: {name: private, arguments: {owner: "{user}"}}}
    - name: queries
`, 1)
}

// page makes a document as the front end shows it.
func (s *stack) page(name string) {
	s.t.Helper()
	path := filepath.Join(s.options.Data, name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte("title: "+name+"\nowner: somebody\nvisibility: some\n\nA blue moon.\n"), 0o644))
}

// browser is a user with one connection, which is one session.
type browser struct {
	stack  *stack
	client http.Client
}

func (s *stack) browse(from string) *browser {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: waiting.Limit}
	connected := false
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected {
			return nil, fmt.Errorf("the connection, and with it the session, has ended")
		}
		connected = true
		return dialer.DialContext(ctx, network, address)
	}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &browser{stack: s, client: http.Client{Transport: transport, Timeout: waiting.Limit}}
}

// send sends one request and returns the answer.
func (b *browser) send(method, path string, body []byte) (status int, text []byte, err error) {
	request, err := http.NewRequestWithContext(b.stack.t.Context(), method, "http://"+b.stack.address+path,
		bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	response, err := b.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// ask sends one request; the answer's text is parsed into answer, if there is one.
func (b *browser) ask(method, path string, body []byte, answer any) int {
	b.stack.t.Helper()
	status, text, err := b.send(method, path, body)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		b.stack.t.Fatalf("%s %s: %d %s: %v", method, path, status, text, err)
	}
	return status
}

// webSession is the front end's description of a session.
type webSession struct {
	Nonce, Principal, Region, Mode, Instance, Error string
}

// login signs in as principal with somebody's key.
func (b *browser) login(principal, signer string) (int, webSession) {
	b.stack.t.Helper()
	var before, after webSession
	if status := b.ask("GET", "/session", nil, &before); status != http.StatusOK {
		b.stack.t.Fatalf("GET /session: %d %+v", status, before)
	}
	claim, err := json.Marshal(map[string]string{"principal": principal,
		"signature": b.stack.signature(principal, signer, before.Nonce)})
	b.stack.must(err)
	status := b.ask("POST", "/session", claim, &after)
	return status, after
}

// result is a page of results.
type result struct {
	Results []struct {
		Title, Snippet string
	}
	Withheld int
	Error    string
}

// has reports whether exactly these documents are shown, in any order.
func (r result) has(titles ...string) bool {
	var shown []string
	for _, one := range r.Results {
		shown = append(shown, one.Title)
	}
	slices.Sort(shown)
	slices.Sort(titles)
	return slices.Equal(shown, titles)
}

const search = "/search?q=blue+moon"

// search searches; engine answers the query.
func (b *browser) search(engine func(query uint32)) result {
	b.stack.t.Helper()
	answered := make(chan string, 1)
	var found result
	go func() {
		status, text, err := b.send("GET", search, nil)
		if err == nil && status == http.StatusOK {
			err = json.Unmarshal(text, &found)
		}
		if err != nil || status != http.StatusOK {
			answered <- fmt.Sprintf("%d %s, %v", status, text, err)
		}
		close(answered)
	}()
	waiting.Until(b.stack.t, "the search engine is asked", func() bool { return len(answered) > 0 || b.stack.isAsked() })
	if len(answered) == 0 {
		engine(b.stack.nextQuery())
	}
	if failure := <-answered; failure != "" {
		b.stack.t.Fatalf("search: %s", failure)
	}
	return found
}

// isAsked reports whether there is a query of the only session for the search engine.
func (s *stack) isAsked() bool {
	poll := []unix.PollFd{{Fd: int32(s.queries().Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1
}

func (s *stack) queries() *os.File {
	return s.searchEngine(wire.FDPipe, s.onlySession().Slot)
}

// nextQuery reads one, and returns its number.
func (s *stack) nextQuery() uint32 {
	s.t.Helper()
	line := make([]byte, 4096)
	n, err := s.queries().Read(line)
	s.must(err)
	var query struct{ Query uint32 }
	if err := json.Unmarshal(line[:n], &query); err != nil {
		s.t.Fatalf("query %s: %v", line[:n], err)
	}
	return query.Query
}

func (s *stack) onlySession() pipeline.SessionStatus {
	s.t.Helper()
	sessions := s.liveSessions()
	if len(sessions) != 1 {
		s.t.Fatalf("%d sessions live, one should", len(sessions))
	}
	return sessions[0]
}

// results answers a query of the only session with documents.
func (s *stack) results(query uint32, names ...string) {
	s.t.Helper()
	var conduits []uint32
	for _, name := range names {
		conduits = append(conduits, s.id(name))
	}
	session := s.onlySession()
	s.writeTransfer(session.Slot, session.Mode, query, conduits...)
}

const (
	everybodys = "/corpus/public/2.txt"
	alices     = "/corpus/private/alice/1.txt"
	bobs       = "/corpus/private/bob/1.txt"
)

func TestFrontEnd(t *testing.T) {
	for _, mode := range []string{"shai", "dynamic", "dynamic-lazy"} {
		t.Run(mode, func(t *testing.T) {
			s := newStack(t)
			s.startKeyValue()
			s.useFrontEnd()
			for _, name := range []string{everybodys, alices, bobs} {
				s.page(name)
			}
			s.principal("alice", "de")
			s.principal("bob", "de")
			s.fact("regions", "prefix", "127.0.1.0/24", "de")
			s.start()
			_, err := s.monitor.SetMode(t.Context(), "probe", mode)
			s.must(err)
			s.servesTwoUsers(mode)
		})
	}
}

// servesTwoUsers has alice search, and bob after her on her slot.
func (s *stack) servesTwoUsers(mode string) {
	alice := s.browse("127.0.1.1")
	if status, session := alice.login("alice", "bob"); status != http.StatusForbidden ||
		!strings.Contains(session.Error, "signature") {
		s.t.Fatalf("with bob's key: %d %+v", status, session)
	}
	var refused result
	if status := alice.ask("GET", search, nil, &refused); status != http.StatusUnauthorized {
		s.t.Fatalf("a search before the login: %d %+v", status, refused)
	}
	if status, session := alice.login("alice", "alice"); status != http.StatusOK ||
		session.Instance != "worker(alice, de)" || session.Mode != mode {
		s.t.Fatalf("alice: %d %+v", status, session)
	}
	slot, before := s.onlySession().Slot, s.interceptions()
	asked := s.seesAll(alice)
	after := s.interceptions()
	if natively := after["open"] == before["open"] && after["send"] == before["send"]; natively != (mode == "shai") {
		s.t.Errorf("alice has her results natively: %v in mode %s", natively, mode)
	}
	s.seesOnlyOwn(alice, alices, bobs)

	s.results(asked+2, alices) // an answer that arrives when its session is over
	if status := alice.ask("DELETE", "/session", nil, nil); status != http.StatusNoContent {
		s.t.Fatalf("logging out: %d", status)
	}
	waiting.Until(s.t, "the session is over", func() bool { return len(s.liveSessions()) == 0 })
	s.awaitIdle()

	bob := s.browse("127.0.1.1")
	waiting.Until(s.t, "bob is served on the slot that alice had", func() bool {
		if status, session := bob.login("bob", "bob"); status != http.StatusOK || session.Instance != "worker(bob, de)" {
			s.t.Fatalf("bob: %d %+v", status, session)
		}
		if s.onlySession().Slot == slot {
			return true
		}
		// The supervisor cleans alice's still.
		if status := bob.ask("DELETE", "/session", nil, nil); status != http.StatusNoContent {
			s.t.Fatalf("logging out: %d", status)
		}
		waiting.Until(s.t, "the session is over", func() bool { return len(s.liveSessions()) == 0 })
		bob = s.browse("127.0.1.1")
		return false
	})
	s.seesOnlyOwn(bob, bobs, alices)
}

// seesAll has alice search for what she may see, and returns the query's number.
func (s *stack) seesAll(alice *browser) (asked uint32) {
	s.t.Helper()
	found := alice.search(func(query uint32) {
		asked = query
		s.results(query, everybodys, alices)
	})
	if !found.has(alices, everybodys) || found.Withheld != 0 {
		s.t.Fatalf("alice's results: %+v", found)
	}
	return asked
}

// seesOnlyOwn has the engine answer with a foreign document among the user's: the
// page has it not, says that something is withheld, and the audit log says what.
func (s *stack) seesOnlyOwn(b *browser, own, foreign string) {
	s.t.Helper()
	s.records()
	found := b.search(func(query uint32) {
		s.results(query-1, foreign) // to an earlier query
		s.results(query, foreign, own, everybodys)
	})
	if !found.has(own, everybodys) || found.Withheld != 1 {
		s.t.Errorf("results without %s: %+v", foreign, found)
	}
	for _, one := range found.Results {
		if !strings.Contains(one.Snippet, "blue") {
			s.t.Errorf("%s is shown with %q", one.Title, one.Snippet)
		}
	}
	denied := func(r audit.Record) bool { return r.Kind == audit.Denial && r.Conduit == foreign }
	if records := s.records(); !slices.ContainsFunc(records, denied) {
		s.t.Errorf("no record says that %s was refused: %+v", foreign, records)
	}
}
