// SPDX-License-Identifier: BSD-2-Clause

// Package kvfilter restricts a task's connection to the key-value store (Redis 7 or
// Valkey) to exactly the tuples and commands that its instance may use. The store itself
// filters, at native speed: every instance is an ACL user of its own, and the task
// receives a socket that is already authenticated as that user.
//
// All decisions of this layer are in rules.go (the rights of an instance) and server.go
// (what no user may do). client.go carries them out. Package kvcommand decides which
// commands can be granted.
package kvfilter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"shai.dev/monitor/internal/kvcommand"
)

// Grant allows commands on keys. The commands of one grant never apply to the keys
// of another.
type Grant struct {
	Access   kvcommand.Access
	Commands []string // names as in the manifest, any case
	Keys     []string // whole keys, never patterns
}

// ACLRules returns the arguments of ACL SETUSER that give the user exactly the rights of
// grants, whatever rights it had before. passwordHash is the lower-case hex SHA-256 of
// its password. The result depends only on the set of grants, not on their order.
func ACLRules(name, passwordHash string, grants []Grant) ([]string, error) {
	if err := checkUserName(name); err != nil {
		return nil, err
	}
	if hash, err := hex.DecodeString(passwordHash); err != nil || len(hash) != sha256.Size ||
		strings.ToLower(passwordHash) != passwordHash {
		return nil, fmt.Errorf("key-value user %s: password hash is not a lower-case hex SHA-256", name)
	}
	selectors := make(map[string][]string) // permission and commands -> key patterns
	for _, grant := range grants {
		head, patterns, err := selector(grant)
		if err != nil {
			return nil, fmt.Errorf("key-value user %s: %w", name, err)
		}
		if len(patterns) > 0 {
			selectors[head] = append(selectors[head], patterns...)
		}
	}
	rules := []string{"reset", "resetkeys", "resetchannels", "clearselectors", "-@all", "#" + passwordHash, "on"}
	for _, head := range sortedKeys(selectors) {
		patterns := selectors[head]
		slices.Sort(patterns)
		rules = append(rules, "(-@all "+head+" "+strings.Join(slices.Compact(patterns), " ")+")")
	}
	return rules, nil
}

// selector returns a grant's commands, in canonical form, and its key patterns. Each list
// of commands has a selector of its own, so that the right to SET one key cannot combine
// with the right to LTRIM another.
func selector(grant Grant) (head string, patterns []string, err error) {
	mark := map[kvcommand.Access]string{
		kvcommand.Read: "%R~", kvcommand.Write: "%W~", kvcommand.Read | kvcommand.Write: "%RW~",
	}[grant.Access]
	if mark == "" {
		return "", nil, fmt.Errorf("grant on %d keys names no access; use Read, Write or both", len(grant.Keys))
	}
	if len(grant.Commands) == 0 {
		return "", nil, fmt.Errorf("grant on %d keys names no commands", len(grant.Keys))
	}
	commands := make([]string, 0, len(grant.Commands))
	for _, command := range grant.Commands {
		if err := kvcommand.Check(command, grant.Access); err != nil {
			return "", nil, err
		}
		commands = append(commands, "+"+strings.ToLower(command))
	}
	slices.Sort(commands)
	for _, key := range grant.Keys {
		pattern, err := escapeKey(key)
		if err != nil {
			return "", nil, err
		}
		patterns = append(patterns, quote(mark+pattern))
	}
	return strings.Join(slices.Compact(commands), " "), patterns, nil
}

// escapeKey returns the glob that matches only key. The store refuses white space in
// patterns, and a wildcard in its place would grant too much, so such a key cannot be
// granted.
func escapeKey(key string) (string, error) {
	if key == "" {
		return "", fmt.Errorf("key is empty: an empty pattern grants nothing and hides a mistake")
	}
	var escaped strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c <= ' ' || c == 0x7f:
			return "", fmt.Errorf("key %q contains white space or a control character, which the store's access lists cannot express; rename the tuple", key)
		case strings.IndexByte(`\*?[]`, c) >= 0:
			escaped.WriteByte('\\')
			escaped.WriteByte(c)
		default:
			escaped.WriteByte(c)
		}
	}
	return escaped.String(), nil
}

// quote writes a token in the form that the store's argument splitter reads: inside a
// selector, quotes and backslashes would otherwise change its meaning.
func quote(token string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(token) + `"`
}

// userPrefix returns how the names of a pipeline's users begin. The store's user names
// cannot contain all characters of the names of pipelines and instances.
func userPrefix(pipeline string) string { return "pipeline-" + shortHash(pipeline) + "-" }

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func checkUserName(name string) error {
	if name == "" || name == "default" {
		return fmt.Errorf("key-value user %q: the name is reserved", name)
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f {
			return fmt.Errorf("key-value user %q: the store's user names take printable ASCII without spaces; use Store.UserName", name)
		}
	}
	return nil
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
