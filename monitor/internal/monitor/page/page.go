// SPDX-License-Identifier: BSD-2-Clause

// Package page is the page that explains decisions in a browser: why a user may or may not
// read a document, who else may, what was decided about it, and what is refused now. It only
// asks: no request to it changes anything.
//
// What it shows is for administrators, as is the rest of the API. The monitor serves it on its
// socket, which nobody else can open. On an address of the loopback network, which every user
// of the machine can reach, a [Gate] asks for a token: there the monitor serves it if asked to,
// and shai explain --browser does.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/internal/look"
	"shai.dev/monitor/internal/monitor/api"
)

// Source answers the page's questions: a monitor, or a client of one.
type Source interface {
	Status(ctx context.Context) (api.Status, error)
	Explain(ctx context.Context, question api.Question) (api.Explanation, error)
	Readers(ctx context.Context, request api.ReadersRequest) (api.Readers, error)
	Query(ctx context.Context, query audit.Query, each func(audit.Record) error) error
}

//go:embed assets
var assets embed.FS

// policy is the content security policy. The page's scripts, styles and data come from its own
// origin only, and no text can become markup: trusted types are required and none are defined.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// What the page's requests may take of the monitor at a time.
const (
	maxQuestions = 4                // answered at the same time
	maxTime      = 10 * time.Second // of one question
	maxDecisions = 20               // records about a document
	maxListed    = 50               // users who may read it
)

// pages answers the page's requests.
type pages struct {
	source    Source
	questions chan struct{} // one for each that is being answered
	streams   chan struct{} // one for each window that follows denials
}

// New returns the page's handler. Its addresses are relative: it can serve beneath any path.
// Without a gate, whoever reaches the handler may ask.
func New(source Source, gate *Gate) http.Handler {
	p := &pages{source: source, questions: make(chan struct{}, maxQuestions), streams: make(chan struct{}, maxStreams)}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		bug.Found("assets of the page: %v", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files)) // the same for everybody; it says nothing
	mux.HandleFunc("GET /look.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = io.WriteString(w, look.Stylesheet())
	})
	for pattern, answer := range map[string]http.Handler{
		"GET /data/pipelines": p.answering(p.pipelines),
		"GET /data/explain":   p.answering(p.explain),
		"GET /data/readers":   p.answering(p.readers),
		"GET /data/decisions": p.answering(p.decisions),
		"GET /data/denials":   http.HandlerFunc(p.denials),
	} {
		if gate != nil {
			answer = gate.before(answer)
		}
		mux.Handle(pattern, fromPage(answer))
	}
	if gate != nil {
		mux.Handle("POST /session", fromPage(http.HandlerFunc(gate.enter)))
	}
	return secured(named(gate, mux))
}

// secured adds the headers that keep the page and its data from other sites.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy":      policy,
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// answering answers with JSON, a limited number of questions at a time.
func (p *pages) answering(answer func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), maxTime)
		defer cancel()
		select {
		case p.questions <- struct{}{}:
			defer func() { <-p.questions }()
		case <-ctx.Done():
			fail(w, api.Unavailable("ask the monitor", "try again", "it is answering %d other questions", maxQuestions))
			return
		}
		if err := api.WellFormed(r.URL.Query()); err != nil {
			fail(w, err)
			return
		}
		value, err := answer(r.WithContext(ctx))
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value) // fails only when the browser has gone
	})
}

// fail answers with a problem.
func fail(w http.ResponseWriter, err error) {
	var problem *api.Problem
	switch {
	case errors.As(err, &problem):
	case errors.Is(err, context.DeadlineExceeded):
		problem = api.Unavailable("ask the monitor", "try again, or ask with shai explain, shai readers or shai audit",
			"there was no answer within %s", maxTime)
	default:
		problem = &api.Problem{Title: "ask the monitor", Status: http.StatusInternalServerError, Detail: err.Error()}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(problem.Status)
	_ = json.NewEncoder(w).Encode(problem)
}

// pipeline is what the page shows of a pipeline.
type pipeline struct {
	Name     string     `json:"name"`
	Mode     string     `json:"mode"`
	Tasks    []string   `json:"tasks"`
	Analyzed *time.Time `json:"analyzed,omitempty"` // when its last analysis began
}

func (p *pages) pipelines(r *http.Request) (any, error) {
	status, err := p.source.Status(r.Context())
	if err != nil {
		return nil, err
	}
	list := []pipeline{}
	for _, one := range status.Pipelines {
		shown := pipeline{Name: one.Name, Mode: one.Mode, Tasks: []string{}}
		if one.LastAnalysis != nil {
			shown.Analyzed = &one.LastAnalysis.Started
		}
		for _, task := range one.Tasks {
			shown.Tasks = append(shown.Tasks, task.Name)
		}
		list = append(list, shown)
	}
	return list, nil
}

func (p *pages) explain(r *http.Request) (any, error) {
	values := r.URL.Query()
	question := api.Question{
		Pipeline: values.Get("pipeline"), Principal: values.Get("principal"), Region: values.Get("region"),
		Conduit: values.Get("conduit"), Access: values.Get("access"), Task: values.Get("task"),
	}
	if question.Conduit == "" || question.Principal == "" && question.Task == "" {
		return nil, api.Invalid("explain", "name both, or a task without users", "the user or the document is missing")
	}
	return p.source.Explain(r.Context(), question)
}

func (p *pages) readers(r *http.Request) (any, error) {
	values := r.URL.Query()
	return p.source.Readers(r.Context(), api.ReadersRequest{Pipeline: values.Get("pipeline"),
		Conduit: values.Get("conduit"), Access: values.Get("access"), Limit: maxListed})
}

// decisions returns the last records about a document, the latest first.
func (p *pages) decisions(r *http.Request) (any, error) {
	query := audit.Query{Kinds: []audit.Kind{audit.Decision, audit.Denial}, Conduit: r.URL.Query().Get("conduit"),
		Limit: maxDecisions}
	if query.Conduit == "" {
		return nil, api.Invalid("list decisions", "name it", "the document is missing")
	}
	records := []audit.Record{}
	err := p.source.Query(r.Context(), query, func(record audit.Record) error {
		records = append([]audit.Record{record}, records...)
		return nil
	})
	return records, err
}

// retryAfter tells a browser when to ask again.
func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
}
