// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"strings"
	"testing"
)

// A worker whose user is not known yet may look for the descriptors of others, and opens
// paths natively beside the number of a capability. It finds none: nothing is in its root.
func TestDescriptorsAreNotOpenedAnew(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.start()
	alice := s.login("alice", "127.0.1.1")
	_, process, _ := strings.Cut(alice.must("session"), "process ")
	somebody, err := s.connect("127.0.1.1")
	s.must(err)
	for _, owner := range []string{process, "self"} {
		descriptor := "/proc/" + owner + "/fd/4"
		if got, err := somebody.say("beneath " + descriptor); err != nil || got != "error ENOENT " {
			t.Errorf("%s: %s, %v", descriptor, got, err)
		}
	}
}
