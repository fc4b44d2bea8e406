// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// mistaken are words that people, and other programs, put where they do not belong.
var mistaken = []string{
	"", "0", "-1", "18446744073709551616", "1e9", "true", "null", "~", "[]", "{}", "[[]]", "\"", "'", "|", "&a", "*a",
	"!!binary x", "{owner}", "{", "}", "**", "/", "/..", "/open/**", "../..", "\x00", "\xff", "ä", "#", "---",
	"2027-01-01T00:00:00Z", "10.0.0.0/33", "read :- true.", "read :-", "policy p(a, a) { read :- sKeyIs(a). }",
	"update :- each in F says f(X) { eq(X, Y) }.", "until", "this", "willsay",
}

// mistakenText is a manifest with some words and lines of it exchanged, lost or doubled.
func mistakenText(text string) *rapid.Generator[string] {
	words := append(slices.Clone(mistaken), strings.Fields(text)...)
	return rapid.Custom(func(t *rapid.T) string {
		lines := strings.Split(text, "\n")
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			at := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			switch rapid.IntRange(0, 3).Draw(t, "edit") {
			case 0:
				lines = slices.Delete(lines, at, at+1)
			case 1:
				lines = slices.Insert(lines, at, lines[rapid.IntRange(0, len(lines)-1).Draw(t, "copied")])
			case 2:
				lines[at] = strings.Repeat(" ", rapid.IntRange(0, 3).Draw(t, "indent")) + lines[at]
			default:
				if own := strings.Fields(lines[at]); len(own) > 0 {
					word, by := rapid.SampledFrom(own).Draw(t, "word"), rapid.SampledFrom(words).Draw(t, "by")
					lines[at] = strings.Replace(lines[at], word, by, 1)
				}
			}
			if len(lines) == 0 {
				lines = []string{""}
			}
		}
		return strings.Join(lines, "\n")
	})
}

// mistakenRequest is something that a client of the API might send.
func mistakenRequest(manifests string) *rapid.Generator[*http.Request] {
	word := rapid.SampledFrom(append([]string{"bare", "worker", "alice", "/open/1.txt", "friends/alice", "friend",
		"shai", "audit", "read", "write"}, mistaken...))
	return rapid.Custom(func(t *rapid.T) *http.Request {
		post := func(path string, body any) *http.Request {
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			return httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(text)))
		}
		sources := []manifest.Source{{Name: "a", Text: mistakenText(manifests).Draw(t, "manifests")}}
		switch rapid.IntRange(0, 7).Draw(t, "request") {
		case 0, 1:
			return post("/v1/bundles", api.ApplyRequest{Sources: sources, Prune: rapid.Bool().Draw(t, "prune")})
		case 2:
			return post("/v1/comparisons", api.CompareRequest{Sources: sources})
		case 3:
			return post("/v1/validations", api.ValidateRequest{Sources: sources, Alone: rapid.Bool().Draw(t, "alone")})
		case 4:
			fact := map[string]any{"conduit": word.Draw(t, "conduit"), "says": word.Draw(t, "relation"),
				"tuple": rapid.SliceOfN(word, 0, 3).Draw(t, "tuple")}
			return post("/v1/facts", map[string]any{rapid.SampledFrom([]string{"add", "remove"}).Draw(t,
				"change"): []any{fact}})
		case 5:
			query := url.Values{"pipeline": {"bare"}, "task": {word.Draw(t, "task")}, "region": {"de"},
				"access":    {"read"},
				"principal": {word.Draw(t, "principal")}, "conduit": {word.Draw(t, "conduit")}}
			return httptest.NewRequest(http.MethodGet, "/v1/explain?"+query.Encode(), nil)
		case 6:
			return post("/v1/analyses", api.AnalyzeRequest{Pipeline: word.Draw(t, "pipeline")})
		}
		path := "/v1/pipelines/" + url.PathEscape(word.Draw(t, "pipeline")) + "/mode"
		return httptest.NewRequest(http.MethodPut, path, strings.NewReader(`{"mode":`+word.Draw(t, "mode")+`}`))
	})
}

// Nothing that users write or send is a bug, which would end the monitor: each request
// has an answer, and no answer says that the program itself is at fault.
func TestMistakesAreNoBugs(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	handler := api.Handler{Service: m, Audit: m.audit, Metrics: http.NotFoundHandler()}
	mux := handler.Mux()
	for name, manifests := range map[string]string{"bare": pipelinetest.Bare, "example": pipelinetest.Probe} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			request := mistakenRequest(manifests).Draw(t, "request")
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, request) // a panic reaches us, as no server is there to take it
			if answer.Code >= http.StatusInternalServerError {
				t.Fatalf("%s %s: %d %s", request.Method, request.URL, answer.Code, answer.Body)
			}
		}))
	}
}
