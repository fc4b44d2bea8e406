// SPDX-License-Identifier: BSD-2-Clause

package kvfilter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/kvcommand"
)

var hash = HashPassword("secret")

func TestACLRules(t *testing.T) {
	grants := []Grant{
		{Access: kvcommand.Write, Commands: []string{"LTRIM", "LPUSH"}, Keys: []string{"history:alice"}},
		{Access: kvcommand.Read, Commands: []string{"GET"}, Keys: []string{"profile:bob", "profile:alice"}},
		{Access: kvcommand.Read, Commands: []string{"get"}, Keys: []string{`odd"*[a]?\`}},
	}
	want := []string{
		"reset", "resetkeys", "resetchannels", "clearselectors", "-@all", "#" + hash, "on",
		`(-@all +get "%R~odd\"\\*\\[a\\]\\?\\\\" "%R~profile:alice" "%R~profile:bob")`,
		`(-@all +lpush +ltrim "%W~history:alice")`,
	}
	got, err := ACLRules("instance-1", hash, grants)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	grants[0], grants[2] = grants[2], grants[0]
	again, _ := ACLRules("instance-1", hash, grants)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("the order of grants shows: %s", diff)
	}
}

func TestACLRulesRefusals(t *testing.T) {
	grant := func(access kvcommand.Access, command, key string) []Grant {
		return []Grant{{Access: access, Commands: []string{command}, Keys: []string{key}}}
	}
	cases := []struct {
		name, user, hash string
		grants           []Grant
		want             string
	}{
		{"default user", "default", hash, nil, "reserved"},
		{"user with space", "worker(alice, de)", hash, nil, "UserName"},
		{"user with line break", "a\nb", hash, nil, "UserName"},
		{"plain password", "u", "secret", nil, "SHA-256"},
		{"upper-case hash", "u", strings.ToUpper(hash), nil, "SHA-256"},
		{"unlisted command", "u", hash, grant(kvcommand.Read, "EVAL", "k"), `"EVAL"`},
		{"sort reads other keys", "u", hash, grant(kvcommand.Read, "SORT", "k"), "SORT"},
		{"category", "u", hash, grant(kvcommand.Read, "@all", "k"), "@all"},
		{"rule in a command", "u", hash, grant(kvcommand.Read, "get ~*", "k"), "cannot be granted"},
		{"write command as read", "u", hash, grant(kvcommand.Read, "SET", "k"), "writes"},
		{"read-write command as write", "u", hash, grant(kvcommand.Write, "GETSET", "k"), "grant it for reading, too"},
		{"score of a written set", "u", hash, grant(kvcommand.Write, "ZADD", "k"), "grant it for reading, too"},
		{"no access", "u", hash, grant(0, "GET", "k"), "no access"},
		{"no commands", "u", hash, []Grant{{Access: kvcommand.Read, Keys: []string{"k"}}}, "no commands"},
		{"key with space", "u", hash, grant(kvcommand.Read, "GET", "k ~*"), "white space"},
		{"key with line break", "u", hash, grant(kvcommand.Read, "GET", "k\n"), "white space"},
		{"empty key", "u", hash, grant(kvcommand.Read, "GET", ""), "empty"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rules, err := ACLRules(c.user, c.hash, c.grants)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v; want an error with %q", rules, err, c.want)
			}
		})
	}
}

func TestUserNamesAreAcceptedAndDistinct(t *testing.T) {
	seen := make(map[string]string)
	for _, pipeline := range []string{"syse", "syse-b"} {
		store := &Store{prefix: userPrefix(pipeline)}
		for _, instance := range []string{"worker(alice, de)", "worker(alice, us)", "worker(alice,de)", "search", ""} {
			name := store.UserName(instance)
			if err := checkUserName(name); err != nil {
				t.Error(err)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%s of %s and %s share %s", instance, pipeline, other, name)
			}
			seen[name] = instance + " of " + pipeline
		}
	}
}

func TestConfigurationRefusesPathsThatBreakOutOfTheirLine(t *testing.T) {
	for _, path := range []string{"relative", "/a\"\nuser x on nopass +@all ~*", `/a\b`, "/a\rb"} {
		if text, err := Configuration(Server{Socket: path, Directory: "/tmp"}, NewSecrets()); err == nil {
			t.Errorf("%q accepted:\n%s", path, text)
		}
	}
}
