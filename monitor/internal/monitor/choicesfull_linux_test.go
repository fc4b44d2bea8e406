// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

// A choice that cannot be recorded is not made: users could fill the space that is kept for changes of
// administrators. One that was made is recorded, even if the disk has become full meanwhile.
func TestUnrecordedChoicesAreRefused(t *testing.T) {
	alice := sessionsThatChoose(t, wire.ModeShai, "lazy", "alice")[0]
	m := alice.m
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.audit.Close())
	directory := t.TempDir()
	if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(directory, unix.MNT_DETACH) })
	log, err := audit.Open(audit.Options{Directory: directory, RefuseUnrecorded: true})
	must(err)
	m.audit, m.services.Audit = log, log
	t.Cleanup(func() { _ = log.Close() })
	if status, reason := alice.chooses(alice.good(diary, asSecret)); status != "" {
		t.Fatalf("while there is space: %s %s", status, reason)
	}

	filler := filepath.Join(directory, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than it should be")
	}
	waiting.Until(t, "the log fails", func() bool {
		m.record(audit.Event{Kind: audit.Reading, Allowed: true})
		return log.Failing() != nil
	})
	request := alice.alices(asDiary, asIs)
	_, err = m.ChoosePolicy(t.Context(), request)
	var problem *api.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("on the full disk: %v", err)
	}
	status, reason := alice.chooses(alice.good(diary, asDiary))
	if status != "EACCES" || !strings.Contains(reason, "cannot be recorded") {
		t.Errorf("a session's, on the full disk: %s %s", status, reason)
	}
	alice.inForce(diary, asSecret)
	const last = "which was made before the disk was full"
	m.recordChosen(passedOn{}, request, api.ChoiceResult{Before: last})

	must(os.Remove(filler))
	waiting.Until(t, "choices are recorded again", func() bool { return log.Failing() == nil })
	if status, reason := alice.chooses(alice.good(diary, asDiary)); status != "" {
		t.Errorf("when there is space again: %s %s", status, reason)
	}
	var before []string
	for _, record := range recordsOf(t, m, "choose") {
		if record.Kind == audit.Document {
			before = append(before, strings.TrimPrefix(record.Reason, "before: "))
		}
	}
	if want := []string{asDiary, last, asSecret}; !slices.Equal(before, want) {
		t.Errorf("choices that are recorded as made: %q, want %q", before, want)
	}
}
