// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/policy"
)

// startStore runs a real redis-server on a unix socket.
func startStore(t *testing.T, arguments ...string) (redis.Conn, string) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed (Debian package redis-server)")
	}
	directory := t.TempDir()
	socket := filepath.Join(directory, "s")
	server := exec.Command(program, append([]string{"--port", "0", "--unixsocket", socket, "--dir", directory, "--save",
		"", "--daemonize", "no"}, arguments...)...)
	var connection redis.Conn
	waiting.Server(t, server, func() bool {
		connection, err = redis.Dial("unix", socket)
		return err == nil
	})
	t.Cleanup(func() { _ = connection.Close() })
	return connection, socket
}

func do(t *testing.T, connection redis.Conn, line ...any) string {
	t.Helper()
	name, _ := line[0].(string)
	reply, err := connection.Do(name, line[1:]...)
	if err != nil {
		t.Fatalf("%v: %v", line, err)
	}
	text, _ := redis.String(reply, nil)
	return text
}

func opened(t *testing.T, spec manifest.FactSourceSpec, login Login) Source {
	t.Helper()
	source, err := Open(spec, login, allowing(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := source.(*stream); ok {
		s.block = 100 * time.Millisecond // for tests that wait for nothing
	}
	t.Cleanup(source.Close)
	return source
}

// allowing returns a list of what the source names.
func allowing(t *testing.T, spec manifest.FactSourceSpec) allowlist.List {
	t.Helper()
	var entries []string
	if spec.Redis != nil {
		entries = append(entries, "unix:"+spec.Redis.Socket)
	}
	if spec.HTTP != nil {
		origin, err := url.Parse(spec.HTTP.URL)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, origin.Scheme+"://"+origin.Host)
	}
	return listed(t, entries...)
}

func listed(t *testing.T, entries ...string) allowlist.List {
	t.Helper()
	list, err := allowlist.Parse(entries)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func described(facts []policy.Fact) []string {
	list := []string{}
	for _, fact := range facts {
		list = append(list, fact.Conduit+" "+fact.Relation+policy.NewTuple(fact.Arguments...).String())
	}
	slices.Sort(list)
	return list
}

// whole fetches everything.
func whole(t *testing.T, source Source) (facts []string, position string) {
	t.Helper()
	update, err := source.Fetch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return described(update.Whole.Facts), update.Whole.Position
}

func fails(t *testing.T, source Source, position, want string) {
	t.Helper()
	update, err := source.Fetch(t.Context(), position)
	if err == nil || !strings.Contains(err.Error(), want) || !update.Empty() {
		t.Errorf("got %+v, %v; want an error with %q", update, err, want)
	}
}

func keysOf(socket string, keys ...manifest.FactKeys) manifest.FactSourceSpec {
	return manifest.FactSourceSpec{Redis: &manifest.FactRedis{Socket: socket, Keys: keys, IntervalSeconds: 7}}
}

func TestKeys(t *testing.T) {
	store, socket := startStore(t)
	do(t, store, "SADD", "friends:alice", "bob", "carol")
	do(t, store, "SADD", "friends:alice/x", "mallory") // a hole is never more than a segment
	do(t, store, "RPUSH", "friends:bob", "alice", "alice")
	do(t, store, "SET", "home:alice:de", "yes")
	do(t, store, "SET", "home:al:ice:de", "yes") // could be taken apart in two ways
	do(t, store, "HSET", "blocked[1]x", "1", "x", "2", "y")
	do(t, store, "SET", "blocked1x", "no")
	source := opened(t, keysOf(socket,
		manifest.FactKeys{Pattern: "friends:{user}", Conduit: "friends/{user}", Says: "friend"},
		manifest.FactKeys{Pattern: "home:{user}:{region}", Conduit: "homes/{region}/{user}", Says: "home"},
		manifest.FactKeys{Pattern: "blocked[1]{what}", Conduit: "blocked", Says: "is"},
	), Login{})
	got, _ := whole(t, source)
	want := []string{`blocked is("1")`, `blocked is("2")`, `friends/alice friend("bob")`,
		`friends/alice friend("carol")`,
		`friends/bob friend("alice")`, `friends/bob friend("alice")`, `homes/de/alice home("yes")`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if source.Pause().Seconds() != 7 {
		t.Errorf("pause %v", source.Pause())
	}
}

func TestManyKeys(t *testing.T) {
	store, socket := startStore(t)
	for i := range 3 * batch {
		do(t, store, "SADD", fmt.Sprintf("friends:%d", i), "bob")
	}
	source := opened(t, keysOf(socket, manifest.FactKeys{Pattern: "friends:{user}", Conduit: "friends/{user}",
		Says: "friend"}), Login{})
	if got, _ := whole(t, source); len(slices.Compact(got)) != 3*batch {
		t.Errorf("%d facts", len(got))
	}
}

func TestKeysThatSayNothingUsable(t *testing.T) {
	store, socket := startStore(t)
	source := opened(t, keysOf(socket, manifest.FactKeys{Pattern: "friends:{user}", Conduit: "friends/{user}",
		Says: "friend"}), Login{})
	do(t, store, "ZADD", "friends:alice", 1, "bob")
	fails(t, source, "", "key friends:alice is a zset; expected a set, a list, a string or a hash")
	do(t, store, "DEL", "friends:alice")
	do(t, store, "SADD", "friends:alice", "\xff")
	fails(t, source, "", "a member of key friends:alice is not UTF-8")
	do(t, store, "DEL", "friends:alice")
	if got, _ := whole(t, source); len(got) != 0 {
		t.Error(got)
	}
	fails(t, opened(t, keysOf(socket+"x", manifest.FactKeys{Pattern: "a", Conduit: "b", Says: "c"}), Login{}), "",
		"is it running?")
	malformed := keysOf(socket, manifest.FactKeys{Pattern: "{a}{b}", Conduit: "b", Says: "c"})
	if _, err := Open(malformed, Login{}, allowing(t, malformed)); err == nil {
		t.Error("a pattern that cannot be taken apart was accepted")
	}
}

func TestLogin(t *testing.T) {
	_, socket := startStore(t, "--user", "monitor", "on", ">secret", "~*", "+@all", "--rename-command", "AUTH",
		"sesame")
	admin, err := redis.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	do(t, admin, "ACL", "SETUSER", "default", "off")
	spec := keysOf(socket, manifest.FactKeys{Pattern: "a", Conduit: "b", Says: "c"})
	fails(t, opened(t, spec, Login{}), "", "NOAUTH")
	fails(t, opened(t, spec, Login{"sesame", "monitor", "guess"}), "", "authenticate at the store")
	if got, _ := whole(t, opened(t, spec, Login{"sesame", "monitor", "secret"})); len(got) != 0 {
		t.Error(got)
	}
}

func streamOf(socket string) manifest.FactSourceSpec {
	return manifest.FactSourceSpec{Redis: &manifest.FactRedis{Socket: socket,
		Stream: &manifest.FactStream{Key: "facts"}, IntervalSeconds: 7}}
}

// entry appends to the stream.
func entry(t *testing.T, store redis.Conn, op, conduit, tuple string) string {
	t.Helper()
	return do(t, store, "XADD", "facts", "*", "op", op, "conduit", conduit, "says", "r", "tuple", tuple)
}

func TestStream(t *testing.T) {
	store, socket := startStore(t)
	for range entriesAtOnce { // more than one page
		entry(t, store, "add", "a", `["gone", 1]`)
	}
	entry(t, store, "remove", "a", `["gone", 1]`)
	entry(t, store, "add", "a", `["gone too", {"time": "2026-03-01T12:00:00Z"}]`)
	entry(t, store, "replace", "a", `["stays"]`)
	entry(t, store, "add", "b", `["b"]`)
	last := entry(t, store, "add", "a", `["also", 17]`)
	source := opened(t, streamOf(socket), Login{})
	got, position := whole(t, source)
	if diff := cmp.Diff([]string{`a r("also", 17)`, `a r("stays")`, `b r("b")`}, got); diff != "" || position != last {
		t.Errorf("position %s, want %s\n%s", position, last, diff)
	}
	entry(t, store, "remove", "a", `["stays"]`)
	last = entry(t, store, "replace", "b", `["c"]`)
	update, err := source.Fetch(t.Context(), position)
	if err != nil {
		t.Fatal(err)
	}
	want := []catalog.Step{
		{Verb: catalog.StepRemove, Fact: policy.Fact{Conduit: "a", Relation: "r",
			Arguments: []policy.Value{policy.String("stays")}}},
		{Verb: catalog.StepReplace, Fact: policy.Fact{Conduit: "b", Relation: "r",
			Arguments: []policy.Value{policy.String("c")}}},
	}
	if diff := cmp.Diff(want, update.Steps, cmp.AllowUnexported(policy.Value{})); diff != "" ||
		update.Position != last || update.Whole != nil {
		t.Errorf("position %s, want %s\n%s", update.Position, last, diff)
	}
	if source.Pause() != 0 {
		t.Errorf("pause %v", source.Pause())
	}
}

// A fetch that waits for an entry ends with its context, and gets an entry that is added
// in the meantime.
func TestStreamWaits(t *testing.T) {
	store, socket := startStore(t)
	entry(t, store, "add", "a", `["1"]`)
	source := opened(t, streamOf(socket), Login{})
	source.(*stream).block = blockTime
	_, position := whole(t, source)
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := opened(t, streamOf(socket), Login{})
	ended := make(chan error)
	go func() {
		_, err := cancelled.Fetch(ctx, position)
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Error("a fetch that was cancelled succeeded")
	}
	got := make(chan Update)
	go func() {
		update, _ := source.Fetch(t.Context(), position)
		got <- update
	}()
	entry(t, store, "add", "a", `["2"]`)
	if update := <-got; len(update.Steps) != 1 {
		t.Errorf("%+v", update)
	}
}

// Where entries may have been missed, nothing is believed.
func TestStreamWithMissingEntries(t *testing.T) {
	t.Run("no stream", func(t *testing.T) {
		store, socket := startStore(t)
		source := opened(t, streamOf(socket), Login{})
		fails(t, source, "", "there is no such stream (the key's type is none)")
		do(t, store, "XGROUP", "CREATE", "facts", "g", "$", "MKSTREAM")
		got, position := whole(t, source)
		if len(got) != 0 || position != start {
			t.Errorf("%v at %s", got, position)
		}
		entry(t, store, "add", "a", `["1"]`)
		if update, err := source.Fetch(t.Context(), position); err != nil || len(update.Steps) != 1 {
			t.Errorf("%+v, %v", update, err)
		}
	})
	t.Run("trimmed before the first fetch", func(t *testing.T) {
		store, socket := startStore(t)
		entry(t, store, "add", "a", `["1"]`)
		entry(t, store, "add", "a", `["2"]`)
		do(t, store, "XTRIM", "facts", "MAXLEN", 1)
		fails(t, opened(t, streamOf(socket), Login{}), "", "entries that were deleted unread: 1; their changes are lost")
	})
	t.Run("trimmed between fetches", func(t *testing.T) {
		store, socket := startStore(t)
		entry(t, store, "add", "a", `["1"]`)
		source := opened(t, streamOf(socket), Login{})
		_, position := whole(t, source)
		entry(t, store, "add", "a", `["2"]`)
		do(t, store, "XTRIM", "facts", "MAXLEN", 2)
		if update, err := source.Fetch(t.Context(), position); err != nil || len(update.Steps) != 1 {
			t.Errorf("nothing was lost: %+v, %v", update, err)
		}
		entry(t, store, "remove", "a", `["1"]`)
		entry(t, store, "add", "a", `["3"]`)
		do(t, store, "XTRIM", "facts", "MAXLEN", 1)
		fails(t, source, position, "was deleted, and others may have been deleted unread")
	})
	t.Run("trimmed and nothing new", func(t *testing.T) {
		store, socket := startStore(t)
		position := entry(t, store, "add", "a", `["1"]`)
		do(t, store, "XTRIM", "facts", "MAXLEN", 0)
		source := opened(t, streamOf(socket), Login{})
		if update, err := source.Fetch(t.Context(), position); err != nil || !update.Empty() {
			t.Errorf("%+v, %v", update, err)
		}
	})
	t.Run("begun anew", func(t *testing.T) {
		store, socket := startStore(t)
		entry(t, store, "add", "a", `["1"]`)
		source := opened(t, streamOf(socket), Login{})
		_, position := whole(t, source)
		do(t, store, "DEL", "facts")
		fails(t, source, position, "there is no such stream")
		entry(t, store, "add", "a", `["2"]`)
		fails(t, source, position, "was deleted")
	})
}

func TestMalformedEntries(t *testing.T) {
	for _, test := range []struct {
		fields []any
		want   string
	}{
		{[]any{"op", "append", "conduit", "a", "says", "r", "tuple", "[]"},
			`op is "append"; expected add, remove or replace`},
		{[]any{"op", "add", "says", "r", "tuple", "[]"}, "conduit or says is missing"},
		{[]any{"op", "add", "conduit", "a", "says", "r"}, "expected a JSON array"},
		{[]any{"op", "add", "conduit", "a", "says", "r", "tuple", "[1.5]"}, "expected a JSON array"},
		{[]any{"op", "add", "conduit", "a", "says", "r", "tuple", "null"}, "expected a JSON array"},
		{[]any{"op", "add", "conduit", "a", "says", "r", "tuple", `["\ud83d"]`}, `\ud83d is half a character`},
		{[]any{"op", "add", "conduit", "a", "says", "r", "tuple", `["1"]`, "tuple", `["2"]`}, "a field is given twice"},
		{[]any{"op", "add", "conduit", "\xff", "says", "r", "tuple", "[]"}, "conduit is not UTF-8"},
	} {
		store, socket := startStore(t)
		entry(t, store, "add", "a", `["1"]`)
		source := opened(t, streamOf(socket), Login{})
		_, position := whole(t, source)
		do(t, store, append([]any{"XADD", "facts", "*"}, test.fields...)...)
		fails(t, source, position, test.want)
		fails(t, source, "", test.want)
	}
}
