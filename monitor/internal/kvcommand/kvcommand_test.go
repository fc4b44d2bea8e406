// SPDX-License-Identifier: BSD-2-Clause

package kvcommand

import (
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		command string
		access  Access
		want    string // in the error; empty: granted
	}{
		{"GET", Read, ""}, {"get", Read, ""}, {"GET", Read | Write, ""},
		{"SET", Write, ""}, {"ZADD", Read | Write, ""},
		{"SET", Read, "command SET writes; list it under write"},
		{"incr", Read, "command INCR writes; list it under write"},
		{"ZADD", Write, "command ZADD reads; grant it for reading, too"},
		{"EXPIRE", Read | Write, ""}, {"EXPIRE", Write, "command EXPIRE reads; grant it for reading, too"},
		{"EXPIRE", Read, "command EXPIRE writes; list it under write"},
		{"GET", Write, "command GET reads"}, {"GET", 0, "command GET reads"},
		{"KEYS", Read | Write, `command "KEYS" cannot be granted: `},
		{"SORT", Read, "use APPEND, DECR, DEL, "}, {"", Read, `command ""`}, {"@all", Read, "cannot be granted"},
		{"get ~*", Read, "cannot be granted"}, {"get|x", Read, "cannot be granted"},
		{"EVAL", Write, "cannot be granted"},
	} {
		err := Check(test.command, test.access)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q with access %d: %v, want %q", test.command, test.access, err, test.want)
		}
	}
}

func TestWithin(t *testing.T) {
	listed := []string{"set", "ZADD", "GET", "KEYS"}
	for access, want := range map[Access][]string{
		Read: {"GET", "KEYS"}, Write: {"set", "KEYS"}, Read | Write: listed,
	} {
		if got := Within(access, listed); !slices.Equal(got, want) {
			t.Errorf("access %d: %v, want %v", access, got, want)
		}
	}
}
