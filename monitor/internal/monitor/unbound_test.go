// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/waiting"
)

func TestConnectionWithoutAUserEnds(t *testing.T) {
	s := newStack(t)
	s.options.Sessions.Login = 2 * time.Second
	s.document("/corpus/private/alice/1.txt")
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.open()
	s.apply()
	s.analyze()
	s.startWorkers()
	alice := s.login("alice", "127.0.1.1") // the allowed twin: a user may stay
	silent, err := s.connect("127.0.1.1")
	if err == nil {
		_ = silent.connection.SetDeadline(time.Now().Add(waiting.Limit))
		_, err = silent.answers.line()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("a connection without a user: got %v, want its end", err)
	}
	alice.must("mode")
	said := slices.ContainsFunc(s.records(), func(r audit.Record) bool {
		return r.Kind == audit.Denial && strings.Contains(r.Reason, "nobody authenticated")
	})
	if !said {
		t.Error("the audit log does not say why the session ended")
	}
}
