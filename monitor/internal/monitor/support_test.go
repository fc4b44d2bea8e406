// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/tasklog"
	"shai.dev/monitor/internal/waiting"
)

// answer is what the support answers about a document.
type answer struct{ Title, Error string }

// shows asks for a document. Where what the front end has read may not leave, its connection ends
// without an answer.
func (s *sysE) shows(b *browser, document, name string) (status int, got answer) {
	s.t.Helper()
	target := fmt.Sprintf("/document?id=%d&name=%s", s.id(document), url.QueryEscape(name))
	status, text, err := b.send("GET", target, nil)
	if err == nil {
		s.must(json.Unmarshal(text, &got))
	}
	return status, got
}

// log is what the log of accesses contains: in mode baseline the task's own, which has more.
func (s *sysE) log() string {
	s.t.Helper()
	if !s.enforces() {
		page, err := tasklog.Read(filepath.Join(s.options.State, "logs/syse/support/baseline.log"), "", 16<<10)
		s.must(err)
		return string(page.Text)
	}
	text, err := os.ReadFile(filepath.Join(s.options.Data, "support/accesses"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(text)
}

// The support's front end reads a user's document after its entry in the log. One that leaves the
// entry out, forges it for a colleague or dates it ahead shows nothing, and its entry is not
// written. In mode baseline all of them show it.
func TestSupport(t *testing.T) {
	const erins, forged = `access("erin", "` + alices + `", `, `access("colleague", "` + alices + `", `
	// What is in the log, by fault, where nothing is enforced.
	baseline := map[string]string{"none": erins, "skip-entry": "", "forge-entry": forged, "date-ahead": erins}
	for _, mode := range []string{"shai", "dynamic", "baseline"} {
		for fault, logged := range baseline {
			t.Run(mode+"/"+fault, func(t *testing.T) {
				s := newSysE(t, mode, map[string]string{"SUPPORT_FAULT": fault})
				s.page(alices)
				s.start("support")
				status, got := s.shows(s.at("support", "erin", "us"), alices, alices)
				works := mode == "baseline" || fault == "none"
				if works != (got.Title == alices) {
					t.Errorf("erin has %+v, %d", got, status)
				}
				if !works {
					logged = ""
				}
				if !s.enforces() { // what a task prints reaches its log a moment later
					waiting.Until(t, "the entry is in the task's log", func() bool { return strings.Contains(s.log(), logged) })
				}
				if !strings.Contains(s.log(), logged) || strings.Contains(s.log(), "access(") != (logged != "") {
					t.Errorf("the log: %q", s.log())
				}
			})
		}
	}
}

// An entry is for one employee and one document, and for employees alone.
func TestSupportIsForEmployees(t *testing.T) {
	s := newSysE(t, "shai", nil)
	s.page(alices)
	s.page(bobs)
	s.start("support")
	erin, frank, alice := s.at("support", "erin", "us"), s.at("support", "frank", "de"), s.at("support", "alice", "de")
	for _, c := range []struct {
		who         *browser
		shown, name string
		status      int
	}{
		{erin, alices, alices, http.StatusOK},
		{alice, bobs, bobs, http.StatusForbidden},   // who is no employee
		{frank, alices, bobs, http.StatusForbidden}, // an entry about another document
		{frank, bobs, bobs, http.StatusOK},
	} {
		if status, got := s.shows(c.who, c.shown, c.name); status != c.status {
			t.Errorf("%s with an entry about %s: %d %+v", c.shown, c.name, status, got)
		}
	}
}
