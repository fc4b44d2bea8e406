// SPDX-License-Identifier: BSD-2-Clause

// Package kvcommand decides which commands of the key-value store (Redis 7 or Valkey)
// tasks can be granted, and for which access.
package kvcommand

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Access is how commands may use a tuple.
type Access uint8

// The rights that the store distinguishes. The store refuses a command that needs a right
// that its grant lacks, even if the grant lists the command.
const (
	Read Access = 1 << iota
	Write
)

// grantable are the commands that touch only the keys in their arguments, return at once,
// and show nothing about the server, each with the access that it needs. No other command
// can be granted: neither scripting, publish/subscribe, key enumeration, SORT (its BY and
// GET read other keys), COPY and RENAME, nor blocking calls, transactions and
// administration.
var grantable = map[string]Access{
	"EXISTS": Read, "GET": Read, "GETRANGE": Read, "HEXISTS": Read, "HGET": Read,
	"HGETALL": Read, "HLEN": Read, "HMGET": Read, "LINDEX": Read, "LLEN": Read,
	"LRANGE": Read, "MGET": Read, "SCARD": Read, "SISMEMBER": Read, "SMEMBERS": Read,
	"STRLEN": Read, "TTL": Read, "ZCARD": Read, "ZRANGE": Read, "ZSCORE": Read,
	"APPEND": Write, "DEL": Write, "HDEL": Write, "HSET": Write,
	"LPUSH": Write, "LREM": Write, "LTRIM": Write, "MSET": Write, "RPUSH": Write,
	"SADD": Write, "SET": Write, "SETEX": Write, "SREM": Write, "UNLINK": Write,
	"ZREM": Write,
	"DECR": Read | Write, "GETDEL": Read | Write, "GETSET": Read | Write,
	"HINCRBY": Read | Write, "INCR": Read | Write, "INCRBY": Read | Write,
	"LPOP": Read | Write, "RPOP": Read | Write, "SPOP": Read | Write,
	"EXPIRE": Read | Write, // EXPIRE … GT and LT compare with the time to live
	"ZADD":   Read | Write, // ZADD … INCR 0 answers with a score
}

// Check refuses a command, in any case, that cannot be granted with an access. The error
// names a remedy.
func Check(command string, access Access) error {
	needs, known := grantable[strings.ToUpper(command)]
	if !known {
		return fmt.Errorf("command %q cannot be granted: it is not known to touch only the tuples that it names and to return at once; use %s",
			command, strings.Join(slices.Sorted(maps.Keys(grantable)), ", "))
	}
	if needs&^access&Write != 0 {
		return fmt.Errorf("command %s writes; list it under write", strings.ToUpper(command))
	}
	if needs&^access != 0 {
		return fmt.Errorf("command %s reads; grant it for reading, too", strings.ToUpper(command))
	}
	return nil
}

// Within leaves out the commands that need more than an access. Those that cannot be
// granted at all stay, for [Check] to refuse.
func Within(access Access, commands []string) []string {
	return slices.DeleteFunc(slices.Clone(commands), func(command string) bool {
		return grantable[strings.ToUpper(command)]&^access != 0
	})
}
