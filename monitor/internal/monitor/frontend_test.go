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

	"shai.dev/monitor/internal/audit"
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
	old := "  command: [$(PROBE)/probe_worker]\n  runtime: [$(PROBE), "
	text := s.manifests["pipeline.yaml"]
	if !strings.Contains(text, old) {
		s.t.Fatalf("the pipeline has no %q any more", old)
	}
	text = strings.Replace(text, old, `  command: [$(FRONTEND)/syse-frontend, --workers, "3", --advertisements, $(FRONTEND)/advertisements.txt, --page, $(FRONTEND)/page.html]
  runtime: [$(PROBE), $(FRONTEND), `, 1)
	s.manifests["pipeline.yaml"] = strings.Replace(text, "write: [LPUSH]", "write: [LPUSH, LTRIM]", 1)
}

// page makes a document as the front end shows it.
func (s *stack) page(name string) {
	s.t.Helper()
	path := filepath.Join(s.options.Data, name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o700))
	s.must(os.WriteFile(path, []byte("title: "+name+"\nowner: somebody\nvisibility: some\n\nA blue moon.\n"), 0o600))
}

// browser is a user with one connection, which is one session.
type browser struct {
	stack  *stack
	client http.Client
}

func (s *stack) browse(from string) *browser {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	connected := false
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected {
			return nil, fmt.Errorf("the connection, and with it the session, has ended")
		}
		connected = true
		return dialer.DialContext(ctx, network, address)
	}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &browser{stack: s, client: http.Client{Transport: transport, Timeout: patience}}
}

// ask sends one request; the answer's text is parsed into answer, if there is one.
func (b *browser) ask(method, path string, body []byte, answer any) int {
	b.stack.t.Helper()
	request, err := http.NewRequestWithContext(b.stack.t.Context(), method, "http://"+b.stack.address+path, bytes.NewReader(body))
	b.stack.must(err)
	response, err := b.client.Do(request)
	b.stack.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	b.stack.must(err)
	if len(text) > 0 {
		if err := json.Unmarshal(text, answer); err != nil {
			b.stack.t.Fatalf("%s %s: %d %s: %v", method, path, response.StatusCode, text, err)
		}
	}
	return response.StatusCode
}

// webSession is what the front end says of a session.
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
	claim, err := json.Marshal(map[string]string{"principal": principal, "signature": signature(principal, signer, before.Nonce)})
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

// has says whether these documents are shown, in any order, and no others.
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
	answered := make(chan error, 1)
	go func() { answered <- b.stack.answerQuery(engine) }()
	var found result
	if status := b.ask("GET", search, nil, &found); status != http.StatusOK {
		b.stack.t.Fatalf("search: %d %+v", status, found)
	}
	b.stack.must(<-answered)
	return found
}

// answerQuery plays the search engine for one query of the only session.
func (s *stack) answerQuery(engine func(query uint32)) error {
	line := make([]byte, 4096)
	n, err := s.pipeline().pairs["queries"][s.onlySlot()].reader.Read(line)
	if err != nil {
		return err
	}
	var query struct{ Query uint32 }
	if err := json.Unmarshal(line[:n], &query); err != nil {
		return fmt.Errorf("query %s: %w", line[:n], err)
	}
	engine(query.Query)
	return nil
}

func (s *stack) onlySlot() int { return s.pipeline().liveSessions()[0].slot }

// results writes one transfer into the channel of a slot.
func (s *stack) results(slot int, query uint32, names ...string) {
	s.t.Helper()
	transfer := wire.Transfer{Query: query}
	for _, name := range names {
		transfer.Conduits = append(transfer.Conduits, s.id(name))
	}
	record, err := wire.EncodeTransfer(transfer)
	s.must(err)
	_, err = s.pipeline().pairs["results"][slot].writer.Write(record)
	s.must(err)
}

func TestFrontEnd(t *testing.T) {
	s := newStack(t)
	s.startKeyValue()
	s.useFrontEnd()
	everybodys, alices, bobs := "/corpus/public/2.txt", "/corpus/private/alice/1.txt", "/corpus/private/bob/1.txt"
	for _, name := range []string{everybodys, alices, bobs} {
		s.page(name)
	}
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact(regionsConduit, prefixRelation, "127.0.1.0/24", "de")
	s.start()
	s.records()

	alice := s.browse("127.0.1.1")
	if status, session := alice.login("alice", "bob"); status != http.StatusForbidden || !strings.Contains(session.Error, "signature") {
		t.Fatalf("with bob's key: %d %+v", status, session)
	}
	var refused result
	if status := alice.ask("GET", search, nil, &refused); status != http.StatusUnauthorized {
		t.Fatalf("a search before the login: %d %+v", status, refused)
	}
	if status, session := alice.login("alice", "alice"); status != http.StatusOK || session.Instance != "worker(alice, de)" || session.Mode != "shai" {
		t.Fatalf("alice: %d %+v", status, session)
	}
	slot, opens := s.onlySlot(), s.interceptions()["open"]
	var asked uint32
	found := alice.search(func(query uint32) {
		asked = query
		s.results(slot, query, everybodys, alices)
	})
	if !found.has(alices, everybodys) || found.Withheld != 0 {
		t.Fatalf("alice's results: %+v", found)
	}
	if got := s.interceptions()["open"]; got != opens {
		t.Errorf("%d opens were not native", got-opens)
	}
	s.seesOnlyOwn(alice, slot, everybodys, alices, bobs)

	s.results(slot, asked+2, alices) // an answer that arrives when its session is over
	if status := alice.ask("DELETE", "/session", nil, nil); status != http.StatusNoContent {
		t.Fatalf("logging out: %d", status)
	}
	waitUntil(t, "the session is over", func() bool { return len(s.pipeline().liveSessions()) == 0 })
	s.awaitIdle()

	bob := s.browse("127.0.1.1")
	if status, session := bob.login("bob", "bob"); status != http.StatusOK || session.Instance != "worker(bob, de)" {
		t.Fatalf("bob: %d %+v", status, session)
	}
	if got := s.onlySlot(); got != slot {
		t.Fatalf("bob is served on slot %d, alice was on %d", got, slot)
	}
	s.seesOnlyOwn(bob, slot, everybodys, bobs, alices)
}

// seesOnlyOwn has the engine answer with a foreign document among the user's: the
// page has it not, says that something is withheld, and the audit log says what.
func (s *stack) seesOnlyOwn(b *browser, slot int, everybodys, own, foreign string) {
	s.t.Helper()
	s.records()
	found := b.search(func(query uint32) {
		s.results(slot, query-1, foreign) // to an earlier query
		s.results(slot, query, foreign, own, everybodys)
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
