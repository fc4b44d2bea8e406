// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// exitsOfTyped let data go to typed conduits: to the log, and as numbers of documents or topics.
const exitsOfTyped = `
      declassify :- isAsRestrictive(read, this.read) until cTypeIs("access-log"), cNameIs("/support/accesses").
      declassify :- isAsRestrictive(read, this.read)
                    until cTypeIs("conduit-ids"), cNameIs(C), each in C willsay conduit(I) { cIdExists(I) }.
      declassify :- isAsRestrictive(read, this.read)
                    until cTypeIs("topics"), cNameIs(C), each in C willsay topic(T) { "topics" says topic(T) }.
`

const typedPolicies = `---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: guarded}
spec:
  text: |
    policy guarded {
      read       :- sKeyIs(K), "employees" says employee(K), "/support/accesses" says access(K, this, _).
      declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).` + exitsOfTyped + `    }
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: ranked}
spec:
  text: |
    policy ranked {
      declassify :- isAsRestrictive(read, this.read)
                    until cTypeIs("conduit-ids"), cNameIs(C),
                          each in C willsay conduit(I) { cIdExists(I), hasPol(I, P), isAsRestrictive(read, P.read) }.
    }
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: ranking}
spec:
  text: |
    policy ranking(owner) { read :- sKeyIs(owner). update :- true. }
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: noted}
spec:
  text: |
    policy noted { read :- true. update :- true. }
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: ranker}
spec:
  command: [$(PROBE)/probe_worker, write, /ranked/alice, '2\n', /ranked/alice, '2\n3\n', /ranked/alice, 'the text\n']
  runtimeName: probe
  run: Once
  taint: {name: ranked}
  writes: [ranked]
---
`

const typedConduits = `    - name: accesses
      kind: file
      type: access-log
      paths:
        - {path: /support/accesses, policy: {name: library/append-only-log, arguments: {auditor: auditor}}}
    - name: ids
      kind: file
      type: conduit-ids
      paths:
        - {path: "/ids/{owner}", policy: {name: private, arguments: {owner: "{owner}"}}}
    - name: ranked
      kind: file
      type: conduit-ids
      paths:
        - {path: "/ranked/{owner}", policy: {name: ranking, arguments: {owner: "{owner}"}}}
    - name: interests
      kind: file
      type: topics
      paths:
        - {path: "/interests/{owner}", policy: {name: private, arguments: {owner: "{owner}"}}}
    - name: notes
      kind: file
      type: tuples
      paths:
        - {path: /notes/all, policy: {name: noted}}
    - name: queries
`

// addTyped gives the pipeline typed conduits: a log of accesses to documents beneath
// /corpus/guarded, lists of numbers, and topics.
func (p *player) addTyped(string) string {
	p.t.Helper()
	text := p.manifests["pipeline.yaml"]
	head, rest, found := strings.Cut(text, "metadata: {name: worker}\nspec:\n  text: |\n")
	body, after, closed := strings.Cut(rest, "    }\n")
	if !found || !closed {
		p.t.Fatal("the manifest has no policy worker")
	}
	p.manifests["pipeline.yaml"] = head + "metadata: {name: worker}\nspec:\n  text: |\n" + body +
		strings.TrimPrefix(exitsOfTyped, "\n") + "    }\n" + typedPolicies + strings.TrimPrefix(after, "---\n")
	p.replace("tasks: [search, worker]", "tasks: [search, worker, ranker]")
	p.replace("queries, web]", "accesses, ids, interests, notes, queries, web]")
	p.replace(`        - {path: "/corpus/public/**", policy: {name: public}}`,
		`        - {path: "/corpus/public/**", policy: {name: public}}
        - {path: "/corpus/guarded/**", policy: {name: guarded}}`)
	p.replace("    - name: queries\n", typedConduits)
	return ""
}

const typedTuples = `    - name: tastes
      kind: tuple
      type: topics
      access: {read: [GET]}
      paths:
        - {path: "tastes:{user}", policy: {name: taste, arguments: {owner: "{user}"}}}
    - name: web
`

const tastePolicy = `metadata: {name: noted}
spec:
  text: |
    policy noted { read :- true. update :- true. }
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: taste}
spec:
  text: |
    policy taste(owner) {
      read       :- sKeyIs(owner).
      update     :- sKeyIs(owner).
      declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).` + exitsOfTyped + `    }
`

// addTypedTuples gives it a typed tuple for each user, after addTyped.
func (p *player) addTypedTuples(string) string {
	p.t.Helper()
	p.replace("metadata: {name: noted}\nspec:\n  text: |\n    policy noted { read :- true. update :- true. }\n", tastePolicy)
	p.replace("    - name: web\n", typedTuples)
	p.replace("notes, queries, web]", "notes, tastes, queries, web]")
	p.replace("results]", "results, tastes]")
	return ""
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)

// showsFile shows what the file of a conduit contains.
func (p *player) showsFile(conduit string) string {
	text, err := os.ReadFile(filepath.Join(p.options.Data, conduit))
	if os.IsNotExist(err) {
		return "nothing"
	}
	p.must(err)
	return times.ReplaceAllString(string(text), "<time>")
}
