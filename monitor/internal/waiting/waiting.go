// SPDX-License-Identifier: BSD-2-Clause

// Package waiting waits in tests for what other goroutines and processes do, and for servers.
package waiting

import (
	"testing"
	"time"
)

// Limit bounds how long a test waits for what should happen at once. It is far longer
// than a busy machine takes: no test asserts times.
const Limit = 3 * time.Minute

const pause = 2 * time.Millisecond

// Until returns when something has happened, and ends the test if that does not happen
// within Limit. It must be called from the goroutine that runs the test.
func Until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !happened(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, Limit)
		}
	}
}
