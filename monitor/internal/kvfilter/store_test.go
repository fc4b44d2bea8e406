// SPDX-License-Identifier: BSD-2-Clause

package kvfilter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"shai.dev/monitor/internal/kvcommand"
	"shai.dev/monitor/internal/waiting"
)

// startServer runs a real redis-server; without is dropped from its configuration
// line by line, to show what each line is for.
func startServer(t *testing.T, without ...string) (*Store, string, Secrets) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed (Debian package redis-server)")
	}
	directory, secrets := t.TempDir(), NewSecrets()
	socket := filepath.Join(directory, "s")
	text, err := Configuration(Server{Socket: socket, Directory: directory}, secrets)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		kept := true
		for _, prefix := range without {
			kept = kept && !strings.HasPrefix(line, prefix)
		}
		if kept {
			lines = append(lines, line)
		}
	}
	for _, prefix := range without {
		if prefix == "rename-command AUTH" {
			secrets.AuthCommand = "AUTH"
		}
	}
	file := filepath.Join(directory, "redis.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	var store *Store
	waiting.Server(t, exec.Command(program, file), func() bool {
		store, err = Open(context.Background(), socket, secrets, "syse")
		return err == nil
	})
	t.Cleanup(func() { _ = store.Close() })
	return store, socket, secrets
}

// aliceGrants are those of Sys-E's worker(alice, …).
var aliceGrants = []Grant{
	{Access: kvcommand.Read, Commands: []string{"GET"}, Keys: []string{"profile:alice", "odd*key?[a-z]\\\"'"}},
	{Access: kvcommand.Write, Commands: []string{"SET"}, Keys: []string{"profile:alice"}},
	{Access: kvcommand.Read, Commands: []string{"LRANGE"}, Keys: []string{"history:alice"}},
	{Access: kvcommand.Write, Commands: []string{"LPUSH", "LTRIM"}, Keys: []string{"history:alice"}},
}

// connectAs returns a connection as a task gets it: authenticated.
func connectAs(t *testing.T, store *Store, name string) redis.Conn {
	t.Helper()
	file, err := store.Connect(name)
	if err != nil {
		t.Fatal(err)
	}
	return taskEnd(t, file)
}

func taskEnd(t *testing.T, file *os.File) redis.Conn {
	t.Helper()
	socket, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	connection := redis.NewConn(socket, waiting.Limit, waiting.Limit)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func fill(t *testing.T, store *Store) {
	t.Helper()
	err := store.pipeline([][]any{
		{"SET", "profile:alice", "alice's profile"}, {"SET", "profile:bob", "bob's profile"},
		{"RPUSH", "history:alice", "aback"}, {"RPUSH", "history:bob", "zebra"},
		{"SET", "odd*key?[a-z]\\\"'", "odd"}, {"SET", "oddXkeyYb\\\"'", "not granted"}, {"SET", "other", "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func words(line string) (string, []any) {
	fields := strings.Fields(line)
	arguments := make([]any, len(fields)-1)
	for i, field := range fields[1:] {
		arguments[i] = field
	}
	return fields[0], arguments
}

func TestWorkerConnection(t *testing.T) {
	store, _, secrets := startServer(t)
	fill(t, store)
	bobGrants := []Grant{{Access: kvcommand.Read, Commands: []string{"GET"}, Keys: []string{"profile:bob"}}}
	if err := store.Install(context.Background(), []User{{"alice", aliceGrants}, {"bob", bobGrants}}); err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"GET profile:alice", "SET profile:alice new", "LPUSH history:alice q", "LTRIM history:alice 0 9",
		"LRANGE history:alice 0 -1", `GET odd*key?[a-z]\"'`,
	}
	bobPassword, _ := store.password("bob")
	refused := []string{
		// foreign keys, also through patterns and by several at once
		"GET profile:bob", "SET profile:bob x", "LRANGE history:bob 0 -1", "LPUSH history:bob x", `GET oddXkeyYb\"'`,
		"GET profile:alice*", "SET new x", "MGET profile:alice profile:bob",
		// a command of one grant on the key of another, a read through a write
		"SET history:alice x", "GET history:alice", "LPUSH profile:alice x", `SET odd*key?[a-z]\"' x`,
		"SET profile:alice x GET",
		// commands that no user was granted
		"DEL profile:alice", "STRLEN profile:alice", "COPY profile:bob profile:alice",
		"RENAME profile:bob profile:alice",
		"SORT history:alice BY nosort GET profile:bob", "DUMP profile:alice", "MIGRATE h 1 profile:alice 0 1",
		"OBJECT ENCODING profile:alice",
		"KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "EXISTS profile:bob", "TYPE profile:bob", "TOUCH profile:bob",
		"SELECT 0", "SELECT 1", "SWAPDB 0 1", "MOVE profile:bob 1",
		"EVAL return{1} 0", "EVALSHA x 0", "FCALL f 0", "FUNCTION LIST", "SCRIPT LOAD x",
		"SUBSCRIBE c", "PSUBSCRIBE *", "PUBLISH c m", "SSUBSCRIBE c", "PUBSUB CHANNELS", "MONITOR",
		"MULTI", "EXEC", "WATCH profile:bob", "BLPOP history:bob 0", "WAIT 0 0",
		"CONFIG GET *", "CONFIG SET dir /", "ACL WHOAMI", "ACL SETUSER alice +@all", "ACL LIST",
		"CLIENT LIST", "CLIENT KILL TYPE normal", "CLIENT TRACKING ON", "DEBUG SLEEP 0", "INFO", "COMMAND",
		"MEMORY USAGE profile:alice", "LATENCY LATEST", "SLOWLOG GET",
		"MODULE LIST", "REPLICAOF h 1", "PSYNC x 1", "SYNC", "SAVE", "BGSAVE", "FLUSHALL", "SHUTDOWN NOSAVE",
		"CLUSTER INFO", "RESTORE k 0 x",
		// becoming someone else
		"AUTH bob " + bobPassword, "AUTH " + secrets.Administrator + " " + secrets.Password, "AUTH default x",
		"HELLO 3", "HELLO 2 AUTH bob " + bobPassword, "RESET",
	}
	for _, line := range refused {
		connection := connectAs(t, store, "alice") // SUBSCRIBE and such would change its state
		command, arguments := words(line)
		if reply, err := connection.Do(command, arguments...); err == nil {
			t.Errorf("%s was answered %v", line, reply)
		}
		if profile, err := redis.String(connection.Do("GET", "profile:alice")); err != nil ||
			profile != "alice's profile" {
			t.Errorf("after %s the connection answers %q, %v", line, profile, err)
		}
	}
	connection := connectAs(t, store, "alice")
	for _, line := range allowed {
		command, arguments := words(line)
		if _, err := connection.Do(command, arguments...); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Without each line of the configuration, something gets out: these are the twins
// of the refusals above.
func TestWhatEachProtectionStops(t *testing.T) {
	t.Run("no filter at all", func(t *testing.T) {
		store, socket, _ := startServer(t, "user default")
		fill(t, store)
		connection, err := redis.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if profile, err := redis.String(connection.Do("GET", "profile:bob")); err != nil || profile != "bob's profile" {
			t.Errorf("expected the leak that the filter stops, got %q, %v", profile, err)
		}
	})
	t.Run("AUTH under its own name", func(t *testing.T) {
		connection, bobPassword := connectWithBob(t, "rename-command AUTH")
		if _, err := connection.Do("AUTH", "bob", bobPassword); err != nil {
			t.Fatalf("expected to become bob: %v", err)
		}
		if _, err := connection.Do("GET", "profile:bob"); err != nil {
			t.Errorf("expected the leak that renaming AUTH stops: %v", err)
		}
	})
	t.Run("HELLO", func(t *testing.T) {
		connection, bobPassword := connectWithBob(t, "rename-command HELLO")
		if _, err := connection.Do("HELLO", "2", "AUTH", "bob", bobPassword); err != nil {
			t.Fatalf("expected to become bob: %v", err)
		}
		if _, err := connection.Do("GET", "profile:bob"); err != nil {
			t.Errorf("expected the leak that removing HELLO stops: %v", err)
		}
	})
	t.Run("RESET", func(t *testing.T) {
		connection, _ := connectWithBob(t, "rename-command RESET", "user default")
		if _, err := connection.Do("RESET"); err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Do("GET", "profile:bob"); err != nil {
			t.Errorf("expected the leak that removing RESET (and the default user) stops: %v", err)
		}
	})
}

func connectWithBob(t *testing.T, without ...string) (redis.Conn, string) {
	t.Helper()
	store, _, _ := startServer(t, without...)
	fill(t, store)
	err := store.Install(context.Background(), []User{{"alice", aliceGrants},
		{"bob", []Grant{{Access: kvcommand.Read, Commands: []string{"GET"}, Keys: []string{"profile:bob"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	password, _ := store.password("bob")
	return connectAs(t, store, "alice"), password
}

// Secrets of a version that did not know RESET's new name would leave supervisors without it.
func TestSecretsOfAnEarlierVersion(t *testing.T) {
	store, socket, secrets := startServer(t)
	if got := store.Access(); got != (Access{socket, secrets.AuthCommand, secrets.ResetCommand}) {
		t.Errorf("access is %+v", got)
	}
	secrets.ResetCommand = ""
	if _, err := Open(context.Background(), socket, secrets, "syse"); err == nil || !strings.Contains(err.Error(), "configure") {
		t.Errorf("opened with old secrets: %v", err)
	}
}

func TestConnectFailsClosed(t *testing.T) {
	store, _, _ := startServer(t)
	fill(t, store)
	if _, err := store.Connect("nobody"); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("unknown user: %v", err)
	}
	if err := store.Install(context.Background(), []User{{"alice", aliceGrants}}); err != nil {
		t.Fatal(err)
	}
	t.Run("password the store does not know", func(t *testing.T) {
		store.passwords["ghost"] = "wrong"
		if _, err := store.Connect("ghost"); err == nil || !strings.Contains(err.Error(), "refused the user") {
			t.Errorf("a wrong password: %v", err)
		}
	})
	t.Run("removed user", func(t *testing.T) {
		connection := connectAs(t, store, "alice")
		if err := store.Retain(map[string]bool{"never-installed": true}); err != nil {
			t.Fatal(err)
		}
		if reply, err := connection.Do("GET", "profile:alice"); err == nil {
			t.Errorf("a removed user's connection answered %v", reply)
		}
		if _, err := store.Connect("alice"); !errors.Is(err, ErrUnknownUser) {
			t.Errorf("removed user: %v", err)
		}
	})
	t.Run("store gone", func(t *testing.T) {
		gone := &Store{socket: filepath.Join(t.TempDir(), "none"), passwords: map[string]string{"alice": "x"}}
		if _, err := gone.Connect("alice"); err == nil {
			t.Error("connected to a store that is not there")
		}
	})
}

func TestInstallReplacesRightsOfOpenConnections(t *testing.T) {
	store, _, _ := startServer(t)
	fill(t, store)
	if err := store.Install(context.Background(), []User{{"alice", aliceGrants}}); err != nil {
		t.Fatal(err)
	}
	connection := connectAs(t, store, "alice")
	if err := store.Install(context.Background(), []User{{"alice", aliceGrants[2:]}}); err != nil {
		t.Fatal(err)
	}
	if reply, err := connection.Do("GET", "profile:alice"); err == nil {
		t.Errorf("a withdrawn grant still answers %v", reply)
	}
	if _, err := connection.Do("LRANGE", "history:alice", 0, -1); err != nil {
		t.Errorf("a kept grant: %v", err)
	}
}

func TestInstallInBulk(t *testing.T) {
	store, _, _ := startServer(t)
	fill(t, store)
	users := make([]User, 3*batchSize+1)
	for i := range users {
		key := fmt.Sprintf("profile:user%05d", i)
		users[i] = User{store.UserName(key), []Grant{{Access: kvcommand.Read | kvcommand.Write,
			Commands: []string{"GET", "SET"}, Keys: []string{key}}}}
	}
	if err := store.Install(context.Background(), users); err != nil {
		t.Fatal(err)
	}
	connection := connectAs(t, store, users[len(users)-1].Name)
	if _, err := connection.Do("SET", fmt.Sprintf("profile:user%05d", len(users)-1), "x"); err != nil {
		t.Error(err)
	}
	if _, err := connection.Do("GET", "profile:user00000"); err == nil {
		t.Error("the last user reads the first one's tuple")
	}
}

// An escaped key matches itself and no other, for any key that can be granted.
func FuzzKeyIsGrantedExactly(f *testing.F) {
	for _, seed := range []string{"profile:alice", `a\b`, "a*b", "[x]", "a?b", `"q"`, "'s'", "\xff\xfe", "(p)", "^-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		pattern, err := escapeKey(key)
		if err != nil {
			return
		}
		var plain strings.Builder
		for i := 0; i < len(pattern); i++ {
			if pattern[i] == '\\' {
				i++
			} else if strings.IndexByte("*?[", pattern[i]) >= 0 {
				t.Fatalf("key %q: bare wildcard in %q", key, pattern)
			}
			plain.WriteByte(pattern[i])
		}
		if plain.String() != key {
			t.Fatalf("key %q became %q, which matches %q", key, pattern, plain.String())
		}
	})
}

// users returns those of the key-value store, except for the administrator and the
// default.
func users(t *testing.T, store *Store) []string {
	t.Helper()
	names, err := redis.Strings(store.admin.Do("ACL", "USERS"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return name == "default" || name == store.secrets.Administrator
	})
}

func installed(t *testing.T, store *Store, instances ...string) []string {
	t.Helper()
	var names []string
	for _, instance := range instances {
		user := User{store.UserName(instance), aliceGrants}
		if err := store.Install(context.Background(), []User{user}); err != nil {
			t.Fatal(err)
		}
		names = append(names, user.Name)
	}
	return names
}

func TestUsersThatEnd(t *testing.T) {
	syse, socket, secrets := startServer(t)
	open := func(pipeline string) *Store {
		store, err := Open(context.Background(), socket, secrets, pipeline)
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	expect := func(what string, names ...string) {
		t.Helper()
		found := users(t, syse)
		slices.Sort(found)
		slices.Sort(names)
		if !slices.Equal(found, names) {
			t.Errorf("%s: %q, want %q", what, found, names)
		}
	}
	own := installed(t, syse, "worker(alice)", "worker(bob)")
	other := open("other")
	alien := installed(t, other, "worker(alice)")
	expect("two pipelines have the same instance", own[0], own[1], alien[0])
	connection := connectAs(t, syse, own[0])

	if err := syse.Retain(map[string]bool{own[0]: true}); err != nil {
		t.Fatal(err)
	}
	expect("bob has gone", own[0], alien[0])
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	expect("the other pipeline has gone", own[0])
	if _, err := connection.Do("GET", "profile:alice"); err != nil {
		t.Errorf("a user that was retained: %v", err)
	}

	next := open("syse") // without Close before it, as if the monitor had been killed
	expect("of a monitor that was killed nothing is left")
	if _, err := connection.Do("GET", "profile:alice"); err == nil {
		t.Error("a connection of a monitor that was killed is still served")
	}
	again := installed(t, next, "worker(alice)")
	if err := syse.Retain(nil); err != nil {
		t.Fatal(err)
	}
	expect("the Store before removes none of the next one's", again[0])
	connectAs(t, next, again[0])
}
