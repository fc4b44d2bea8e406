// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/policy"
)

// keys is a source whose facts are the members of keys. Every fetch reads all of them.
type keys struct {
	spec     manifest.FactRedis
	declared manifest.Declared
	login    Login
	patterns []pattern.Pattern // of spec.Keys
}

// batch is the number of keys in one pipelined request.
const batch = 512

func newKeys(spec manifest.FactRedis, declared manifest.Declared, login Login) (*keys, error) {
	k := &keys{spec: spec, declared: declared, login: login}
	for _, one := range spec.Keys {
		parsed, err := pattern.Parse(one.Pattern)
		if err != nil {
			return nil, err
		}
		k.patterns = append(k.patterns, parsed)
	}
	return k, nil
}

// Pause implements [Source].
func (k *keys) Pause() time.Duration { return time.Duration(k.spec.IntervalSeconds) * time.Second }

// Close implements [Source].
func (k *keys) Close() {}

// Fetch implements [Source].
func (k *keys) Fetch(ctx context.Context, _ string) (Update, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	connection, err := connect(ctx, k.spec.Socket, k.login)
	if err != nil {
		return Update{}, err
	}
	defer connection.release()
	var facts []policy.Fact
	var known knownfacts.Checker
	for i, one := range k.spec.Keys {
		found, err := scan(connection, k.patterns[i])
		for len(found) > 0 && err == nil {
			count := min(batch, len(found))
			before := len(facts)
			if facts, err = members(connection, found[:count], one, k.patterns[i], facts); err == nil {
				err = k.check(facts[before:], &known)
			}
			found = found[count:]
		}
		if err != nil {
			return Update{}, fmt.Errorf("fetch facts from keys %s of %s: %w", one.Pattern, k.spec.Socket, err)
		}
	}
	return Update{Whole: &catalog.Fetched{Facts: facts}}, nil
}

// check compares facts with what the source declares, and with what the monitor can use.
func (k *keys) check(facts []policy.Fact, known *knownfacts.Checker) error {
	for _, fact := range facts {
		tuple := policy.NewTuple(fact.Arguments...)
		if err := k.declared.Check(fact.Conduit, fact.Relation, tuple); err != nil {
			return err
		}
		if err := known.Check(fact.Conduit, fact.Relation, tuple); err != nil {
			return err
		}
		if err := fits(fact.Conduit, fact.Relation, fact.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// scan lists the keys that match. It does not miss a key that exists throughout the scan.
func scan(connection redis.Conn, p pattern.Pattern) (found []string, err error) {
	seen := make(map[string]bool)
	for cursor := "0"; ; {
		var page [][]byte
		reply, err := redis.Values(connection.Do("SCAN", cursor, "MATCH", glob(p), "COUNT", 1000))
		if err != nil {
			return nil, err
		}
		if _, err := redis.Scan(reply, &cursor, &page); err != nil {
			return nil, err
		}
		for _, raw := range page {
			key, err := text(raw, "a key")
			if err != nil {
				return nil, err
			}
			if _, matches := p.Match(key); matches {
				seen[key] = true
			}
		}
		if len(seen) > maxFacts {
			return nil, fmt.Errorf("more than %d keys match", maxFacts)
		}
		if cursor == "0" {
			break
		}
	}
	for key := range seen {
		found = append(found, key)
	}
	slices.Sort(found)
	return found, nil
}

// glob returns a pattern of the store's that matches at least what p matches.
func glob(p pattern.Pattern) string {
	var out strings.Builder
	hole := false
	for _, c := range p.String() {
		switch {
		case hole:
			hole = c != '}'
		case c == '{':
			out.WriteByte('*')
			hole = true
		case c == '*':
			out.WriteByte('*')
		case strings.ContainsRune(`?[]^\-`, c):
			out.WriteString(`\` + string(c))
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// readers are the commands that return the members of a key, by its type.
var readers = map[string][]any{
	"set":    {"SMEMBERS"},
	"list":   {"LRANGE", 0, -1},
	"string": {"GET"},
	"hash":   {"HKEYS"},
}

// members appends the facts of the keys.
func members(connection redis.Conn, found []string, spec manifest.FactKeys, p pattern.Pattern,
	facts []policy.Fact) ([]policy.Fact, error) {
	types, err := pipelined(connection, found, func(int) []any { return []any{"TYPE"} })
	if err != nil {
		return nil, err
	}
	for i, kind := range types {
		name, _ := redis.String(kind, nil)
		if readers[name] == nil && name != "none" {
			return nil, fmt.Errorf("key %s is a %s; expected a set, a list, a string or a hash", found[i], name)
		}
	}
	replies, err := pipelined(connection, found, func(i int) []any {
		name, _ := redis.String(types[i], nil)
		if name == "none" {
			return readers["set"] // deleted in the meantime: it has no members
		}
		return readers[name]
	})
	if err != nil {
		return nil, err
	}
	for i, reply := range replies {
		bound, _ := p.Match(found[i])
		conduit := pattern.Fill(map[string]string{"": spec.Conduit}, bound)[""]
		list, err := redis.ByteSlices(reply, nil)
		if single, ok := reply.([]byte); ok {
			list, err = [][]byte{single}, nil
		}
		if err != nil && !errors.Is(err, redis.ErrNil) {
			return nil, fmt.Errorf("key %s: %w", found[i], err)
		}
		for _, raw := range list {
			member, err := text(raw, "a member of key "+found[i])
			if err != nil {
				return nil, err
			}
			facts = append(facts, policy.Fact{Conduit: conduit, Relation: spec.Says,
				Arguments: []policy.Value{policy.String(member)}})
		}
	}
	if len(facts) > maxFacts {
		return nil, fmt.Errorf("more than %d facts; divide them among several sources", maxFacts)
	}
	return facts, nil
}

// pipelined sends a command for every key in one request, and collects the replies.
func pipelined(connection redis.Conn, found []string, command func(i int) []any) ([]any, error) {
	for i, key := range found {
		words := command(i)
		name, _ := words[0].(string)
		if err := connection.Send(name, append([]any{key}, words[1:]...)...); err != nil {
			return nil, err
		}
	}
	if err := connection.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, len(found))
	for i := range replies {
		var err error
		if replies[i], err = connection.Receive(); err != nil {
			return nil, fmt.Errorf("key %s: %w", found[i], err)
		}
	}
	return replies, nil
}
