// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"shai.dev/monitor/internal/kvfilter"
)

// tuple is what the key-value store contains, as its administrator sees it.
func (s *sysE) tuple(command string, arguments ...any) string {
	s.t.Helper()
	socket, authentication := s.plain, []any(nil)
	if socket == "" {
		secrets, err := kvfilter.ReadSecrets(s.options.Secrets)
		s.must(err)
		socket = s.options.Define["REDIS_SOCKET"]
		authentication = []any{secrets.AuthCommand, secrets.Administrator, secrets.Password}
	}
	connection, err := redis.Dial("unix", socket)
	s.must(err)
	defer connection.Close()
	if authentication != nil {
		_, err = connection.Do(authentication[0].(string), authentication[1:]...)
		s.must(err)
	}
	reply, err := connection.Do(command, arguments...)
	s.must(err)
	switch value := reply.(type) {
	case []byte:
		return string(value)
	case []any:
		texts, err := redis.Strings(value, nil)
		s.must(err)
		return strings.Join(texts, " | ")
	}
	return ""
}

const shipSearch = "ship anchor moon rigging"

// searchesAndOpens has alice search, which takes until no answer comes, and open her document.
func (s *sysE) searchesAndOpens() {
	s.t.Helper()
	alice := s.at("worker", "alice", "de")
	var got answer
	query := "/search?q=" + strings.ReplaceAll(shipSearch, " ", "+")
	if status := alice.ask("GET", query, nil, &got); status != http.StatusGatewayTimeout && status != http.StatusBadGateway {
		s.t.Fatalf("search: %d %+v", status, got)
	}
	if s.tuple("LRANGE", "history:alice/"+s.region(), 0, -1) != shipSearch {
		s.t.Fatalf("the history: %q", s.tuple("LRANGE", "history:alice/"+s.region(), 0, -1))
	}
	alice = s.at("worker", "alice", "de")
	id := strconv.Itoa(int(s.id(alices)))
	if status := alice.ask("POST", "/click?id="+id, nil, &got); status != http.StatusOK || got.Title != "A garden in the rain" {
		s.t.Fatalf("click: %d %+v", status, got)
	}
	if clicks := s.tuple("LRANGE", "clicks:alice/"+s.region(), 0, -1); clicks != id+" A garden in the rain" {
		s.t.Fatalf("the clicks: %q", clicks)
	}
	if status := alice.ask("POST", "/click?id="+strconv.Itoa(int(s.id(bobs))), nil, &got); s.enforces() &&
		status != http.StatusForbidden {
		s.t.Errorf("a click on bob's document: %d %+v", status, got)
	}
}

// What alice searched for and opened becomes topics of the list. A topic that is the text of her
// query does not pass, except where nothing is enforced.
func TestInterests(t *testing.T) {
	const found = "topic(\"nautical\")\ntopic(\"weather\")\ntopic(\"gardening\")\n"
	const leaked = "topic(\"" + shipSearch + "\")\n"
	for _, mode := range []string{"shai", "dynamic", "baseline"} {
		for fault, written := range map[string]string{"none": found, "query-as-topic": leaked} {
			t.Run(mode+"/"+fault, func(t *testing.T) {
				s := newSysE(t, mode, map[string]string{"INTERESTS_FAULT": fault})
				s.change("tasks", "/advertisements.txt]", "/advertisements.txt, --answer-timeout, \"1\"]")
				s.titled(alices, "A garden in the rain")
				s.titled(bobs, "Bob's")
				s.start("worker", "interests")
				s.searchesAndOpens()
				var got struct {
					answer
					Topics []string
				}
				status := s.at("interests", "alice", "de").ask("POST", "/topics", nil, &got)
				if fault != "none" && mode != "baseline" {
					if status != http.StatusForbidden || s.tuple("GET", "topics:alice") != "" {
						t.Errorf("a query as a topic: %d %+v, %q", status, got, s.tuple("GET", "topics:alice"))
					}
					return
				}
				if status != http.StatusOK || strings.Join(got.Topics, " ") != "nautical weather gardening" {
					t.Errorf("topics: %d %+v", status, got)
				}
				if topics := s.tuple("GET", "topics:alice"); topics != written {
					t.Errorf("the topics are\n%s, want\n%s", topics, written)
				}
			})
		}
	}
}

// titled makes a document with a title.
func (s *sysE) titled(name, title string) {
	s.t.Helper()
	path := filepath.Join(s.options.Data, name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte("title: "+title+"\nowner: somebody\nvisibility: private\n\nA blue moon.\n"), 0o644))
}
