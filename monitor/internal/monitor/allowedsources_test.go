// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
)

// What the owner of the monitor has not listed is neither fetched nor connected to. What is
// listed no longer is not fetched any more, and the facts before stay.
func TestSourcesThatAreNotAllowed(t *testing.T) {
	store := newFactStore(t)
	store.do("SADD friends:alice bob")
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprintln(w, `{"conduit": "friends/alice", "says": "friend", "tuples": [["carol"]]}`)
	}))
	defer server.Close()
	keys := sourceText(fmt.Sprintf("{redis: {socket: %s, intervalSeconds: 1, keys: [{pattern: \"friends:{user}\", conduit: \"friends/{user}\", says: friend}]}}", store.socket))
	url := sourceText(fmt.Sprintf("{http: {url: %q, intervalSeconds: 1}}", server.URL+"/friends"))
	connections := func() string {
		t.Helper()
		info, err := redis.String(store.Do("INFO", "stats"))
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile("total_connections_received:[0-9]+").FindString(info)
	}
	before := connections()
	options := bareOptions(t, "http://facts.example", server.URL+"/others/", "unix:"+store.socket+"2")
	m := startedBare(t, options)
	defer func() { _ = m.Close() }()
	applyBare(t, m, pipelinetest.Bare)
	for _, text := range []string{keys, url} {
		if err := applyText(m, text); err == nil || !strings.Contains(err.Error(), "FactSource friends: ") ||
			!strings.Contains(err.Error(), "is not allowed: it is not listed") {
			t.Errorf("applied: %v", err)
		}
	}
	if !areFriends(m, "alice", "bob") || requests.Load() > 0 || connections() != before {
		t.Errorf("%d requests, %s", requests.Load(), connections())
	}
	restart := func(sources ...string) {
		t.Helper()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		allowed, err := allowlist.Parse(sources)
		if err != nil {
			t.Fatal(err)
		}
		options.Allowed = allowed
		m = startedBare(t, options)
	}
	restart(server.URL + "/friends")
	applyBare(t, m, url)
	if !areFriends(m, "alice", "carol") {
		t.Error("a listed source is not fetched")
	}
	restart()
	until := requests.Load()
	waiting.Until(t, "the refusal shows", func() bool {
		return strings.Contains(sourceStatus(t, m).Message, "is not allowed") &&
			metricOf(t, m, "shai_fact_source_failures_total") >= 2
	})
	if requests.Load() != until || !areFriends(m, "alice", "carol") {
		t.Errorf("%d requests since, friends %v", requests.Load()-until, areFriends(m, "alice", "carol"))
	}
}

// A pipeline that confines tasks gets no other store than the monitor's own: the monitor
// would log in there with its password. The test's store listens, and hears nothing.
func TestStoresThatAreNotAllowed(t *testing.T) {
	s := newStack(t)
	s.startKeyValue()
	foreign := filepath.Join(openDirectory(t), "s")
	listener, err := net.Listen("unix", foreign)
	s.must(err)
	defer listener.Close()
	heard := make(chan string, 16)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			said := make([]byte, 512)
			count, _ := connection.Read(said)
			heard <- string(said[:count])
			_ = connection.Close()
		}
	}()
	apply := func(mode string) error {
		request := s.sources()
		for i, source := range request.Sources {
			text := strings.ReplaceAll(source.Text, "socket: $(REDIS_SOCKET)", "socket: "+foreign)
			request.Sources[i].Text = strings.Replace(text, "mode: shai", "mode: "+mode, 1)
		}
		_, err := s.monitor.Apply(t.Context(), request)
		return err
	}
	s.open()
	for _, mode := range []string{"shai", "baseline"} {
		want := "spec.keyValue.socket: unix:" + foreign + " is not allowed"
		if err := apply(mode); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %s: %v", mode, err)
		}
	}
	s.must(s.monitor.Close())
	s.options.Allowed, err = allowlist.Parse([]string{"unix:" + foreign})
	s.must(err)
	s.open()
	if err := apply("shai"); err == nil || !strings.Contains(err.Error(), "it is not the monitor's own store") {
		t.Errorf("a listed store: %v", err)
	}
	s.must(apply("baseline")) // in which tasks connect themselves, as their own users
	if len(heard) > 0 {
		t.Errorf("the store that is not the monitor's own heard %q", <-heard)
	}
	source := manifest.Source{Name: "source.yaml", Text: fmt.Sprintf("apiVersion: shai.dev/v1alpha1\nkind: FactSource\n"+
		"metadata: {name: more}\nspec: {redis: {socket: %s, stream: {key: facts}}}\n", foreign)}
	_, err = s.monitor.Apply(t.Context(), api.ApplyRequest{Sources: append(s.sources().Sources, source)})
	waiting.Until(t, "the source is asked", func() bool { return len(heard) > 0 })
	said := <-heard
	if err == nil || strings.Contains(strings.ToLower(said), "auth") || !strings.Contains(said, "XREAD") {
		t.Errorf("a listed source of facts, which is not the monitor's store, heard %q: %v", said, err)
	}
	// Also if the bundle in force names what was the monitor's own store when it was applied.
	request := s.sources()
	for i, source := range request.Sources {
		request.Sources[i].Text = strings.ReplaceAll(source.Text, "$(REDIS_SOCKET)", s.options.Define["REDIS_SOCKET"])
	}
	_, err = s.monitor.Apply(t.Context(), request)
	s.must(err)
	s.must(s.monitor.Close())
	s.options.Define["REDIS_SOCKET"] = foreign
	s.open()
	if _, err := s.monitor.StartTask(t.Context(), "probe", "search"); err == nil ||
		!strings.Contains(err.Error(), "it is not the monitor's own store") {
		t.Errorf("the task of a pipeline whose store was the monitor's own: %v", err)
	}
}
