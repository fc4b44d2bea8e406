// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

const supportManifest = `---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: support}
spec:
  text: |
    policy support(employee, region) {
      read       :- sKeyIs(employee), sRegionIs(region).
      declassify :- isAsRestrictive(read, this.read) until cTypeIs("access-log"), cNameIs("/support/accesses").
    }
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: support}
spec:
  command: [$(FRONTEND)/syse-frontend, --page, $(FRONTEND)/page.html, --serve, support, --fault, FAULT]
  runtimeName: frontend
  run: Always
  parameters: [user, region]
  taint: {name: support, arguments: {employee: "{user}", region: "{region}"}}
  reads: [documents]
  writes: [accesses, support]
---
`

const supportConduits = `    - {name: support, kind: connection, egress: true, listen: $(DESK), task: support}
    - name: accesses
      kind: file
      type: access-log
      paths:
        - {path: /support/accesses, policy: {name: library/append-only-log, arguments: {auditor: auditor}}}
    - name: queries
`

// withSupport adds Sys-E's front end for the support, with a fault, as a second task that serves
// users. It returns the stack as the support's users see it.
func (s *stack) withSupport(fault string) *stack {
	s.t.Helper()
	folder, err := provideFrontEnd()
	if errors.Is(err, fs.ErrNotExist) {
		s.t.Skipf("there is no front end here: %v", err)
	}
	s.must(err)
	s.options.Define["FRONTEND"], s.options.Define["DESK"] = folder, pipelinetest.FreeAddress(s.t)
	s.options.Runtimes["frontend"] = append([]string{folder}, s.options.Runtimes["probe"]...)
	text := s.manifests["pipeline.yaml"]
	for _, change := range [][2]string{
		{"    - name: queries\n", supportConduits},
		{"tasks: [search, worker]", "tasks: [search, worker, support]"},
		{"  conduits:\n", "    - {task: support, from: {conduit: population, says: home, parameters: [user, region]}}\n  conduits:\n"},
		{`        - {path: "/corpus/public/**"`, `        - {path: "/corpus/guarded/**", policy: {name: library/mandatory-access-logging, arguments: {log: /support/accesses}}}
        - {path: "/corpus/public/**"`},
	} {
		if !strings.Contains(text, change[0]) {
			s.t.Fatalf("the pipeline has no %q any more", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	s.manifests["pipeline.yaml"] = text + strings.Replace(supportManifest, "FAULT", fault, 1)
	desk := *s
	desk.address = s.options.Define["DESK"]
	return &desk
}

// The support's front end reads a document after its entry in the log. One that leaves the entry
// out, forges it for a colleague or dates it ahead is given no document, and its entry is not written.
func TestSupport(t *testing.T) {
	const document = "/corpus/guarded/1.txt"
	for fault, works := range map[string]bool{
		"none": true, "skip-entry": false, "forge-entry": false, "date-ahead": false,
	} {
		t.Run(fault, func(t *testing.T) {
			s := newStack(t)
			desk := s.withSupport(fault)
			s.page(document)
			s.principal("erin", "de")
			s.principal("eve", "de")
			s.fact("employees", "employee", "erin")
			s.fact("employees", "employee", "colleague")
			s.fact("regions", "prefix", "127.0.1.0/24", "de")
			s.start()
			_, err := s.monitor.StartTask(t.Context(), "probe", "support")
			s.must(err)
			desk.monitor = s.monitor
			erin := desk.browse("127.0.1.1")
			if status, session := erin.login("erin", "erin"); status != http.StatusOK ||
				session.Instance != "support(erin, de)" {
				t.Fatalf("erin: %d %+v", status, session)
			}
			target := fmt.Sprintf("/document?id=%d&name=%s", s.id(document), url.QueryEscape(document))
			var shown struct{ Title, Snippet, Error string }
			status := erin.ask("GET", target, nil, &shown)
			if works && (status != http.StatusOK || shown.Title != document) ||
				!works && (status != http.StatusForbidden || shown.Title != "") {
				t.Errorf("%d %+v", status, shown)
			}
			text, err := os.ReadFile(filepath.Join(s.options.Data, "support/accesses"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if works && !strings.HasPrefix(string(text), `access("erin", "`+document+`", `) || !works && len(text) > 0 {
				t.Errorf("the log: %q", text)
			}
			if works {
				eve := desk.browse("127.0.1.2")
				if status, session := eve.login("eve", "eve"); status != http.StatusOK {
					t.Fatalf("eve: %d %+v", status, session)
				}
				if status := eve.ask("GET", target, nil, &shown); status != http.StatusForbidden {
					t.Errorf("eve, who is no employee, has %d %+v", status, shown)
				}
			}
		})
	}
}
