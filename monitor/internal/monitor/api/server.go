// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
)

// AuditLog is the part of *audit.Log that the interface reads.
type AuditLog interface {
	// Query calls each for every matching record, oldest first. With query.Follow it
	// continues until ctx ends and then returns nil.
	Query(ctx context.Context, query audit.Query, each func(audit.Record) error) error
	// Verify checks the whole chain.
	Verify(ctx context.Context) (audit.Verification, error)
}

// Handler holds everything that the server needs to answer requests.
type Handler struct {
	Service Service
	Audit   AuditLog
	Metrics http.Handler // the Prometheus exposition
	Page    http.Handler // explains decisions in a browser, beneath /page/ on the socket
}

// Limits on request bodies, in bytes and in time. Only manifests can be large.
const (
	maxManifests = 4 * manifest.MaxSize
	maxBody      = 1 << 20
	bodyTimeout  = time.Minute
)

// Mux returns the table of requests. A request that is not in it is answered with 404 or
// 405.
func (h *Handler) Mux() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range h.requests() {
		mux.HandleFunc(pattern, answering(answer))
	}
	if h.Metrics != nil {
		mux.Handle("GET /metrics", h.Metrics)
	}
	if h.Page != nil {
		mux.Handle("GET /page/", onSocket(http.StripPrefix("/page", h.Page)))
	}
	// Another site must not be able to make requests through a browser that holds a
	// client certificate.
	return http.NewCrossOriginProtection().Handler(authorized(mux))
}

// onSocket answers on the socket only: a page on an address would be one for the browsers of
// other machines.
func onSocket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			refuse(w, NotFound("open the page", "use shai explain --browser", "it is not at this address"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// taskRuns is the address of a run.
const taskRuns = "/v1/pipelines/{pipeline}/tasks/{task}/runs/{run}"

func (h *Handler) requests() map[string]func(http.ResponseWriter, *http.Request) error {
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /v1/bundles":                              h.apply,
		"POST /v1/validations":                          validations,
		"GET /v1/status":                                h.status,
		"POST /v1/analyses":                             h.analyze,
		"GET /v1/analyses/latest":                       h.latest,
		"GET " + analysisWork:                           h.exportAnalysis,
		"POST " + analysisResults:                       h.importAnalysis,
		"POST /v1/comparisons":                          h.compare,
		"GET /v1/explain":                               h.explain,
		"GET /v1/readers":                               h.readers,
		"POST /v1/readings":                             h.reading,
		"GET /v1/audit":                                 h.query,
		"GET /v1/audit/verification":                    h.verify,
		"POST /v1/facts":                                h.facts,
		"POST /v1/documents":                            h.ingest,
		"GET /v1/documents/policy":                      h.itemPolicy,
		"PUT /v1/documents/policy":                      h.choosePolicy,
		"PUT /v1/pipelines/{pipeline}/mode":             h.mode,
		"POST /v1/pipelines/{pipeline}/tasks/{do}":      h.task,
		"GET /v1/pipelines/{pipeline}/tasks/{task}/log": h.taskLog,
		"PUT " + taskRuns:                               h.taskRun(Service.StartRun),
		"GET " + taskRuns:                               h.taskRun(Service.AwaitRun),
		"DELETE " + taskRuns:                            h.taskRun(Service.StopRun),
		"GET /healthz":                                  healthy,
		"GET /readyz":                                   h.ready,
	}
}

// answering turns an error into a problem document.
func answering(answer func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := answer(w, r)
		if err == nil {
			return
		}
		refuse(w, problemOf(r.Method+" "+r.URL.Path, err))
	}
}

func refuse(w http.ResponseWriter, problem *Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(problem.Status)
	json.NewEncoder(w).Encode(problem)
}

// problemOf returns err if it is a problem, or a problem made from it.
func problemOf(title string, err error) *Problem {
	var problem *Problem
	var manifests manifest.Errors
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &manifests):
		problem = Invalid("check manifests", "correct them and apply again; nothing was changed", "%d errors",
			len(manifests))
		if len(manifests) == 1 {
			problem.Detail = "1 error"
		}
		for _, one := range manifests {
			problem.Errors = append(problem.Errors, one.Error())
		}
		return problem
	case errors.As(err, &tooLarge):
		return &Problem{Title: title, Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit), Remedy: "split it"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Unavailable(title, "try again", "%v", err)
	}
	return &Problem{Title: title, Status: http.StatusInternalServerError, Detail: err.Error(),
		Remedy: "the monitor's log says more"}
}

func answer(w http.ResponseWriter, value any, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(value)
}

// read decodes a body strictly: one JSON value, known fields, at most limit bytes.
func read(w http.ResponseWriter, r *http.Request, limit int64, value any) error {
	// The deadline is set only here: if it outlived the body, it would end a long answer.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(value)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err == nil {
			err = errors.New("data follows the JSON value")
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return &Problem{Title: "read request", Status: http.StatusBadRequest,
		Detail: strings.TrimPrefix(err.Error(), "json: "),
		Remedy: "send one JSON object with the documented fields"}
}

func (h *Handler) apply(w http.ResponseWriter, r *http.Request) error {
	var request ApplyRequest
	if err := read(w, r, maxManifests, &request); err != nil {
		return err
	}
	result, err := h.Service.Apply(r.Context(), request)
	return answer(w, result, err)
}

func (h *Handler) status(w http.ResponseWriter, r *http.Request) error {
	status, err := h.Service.Status(r.Context())
	return answer(w, status, err)
}

func (h *Handler) latest(w http.ResponseWriter, r *http.Request) error {
	analysis, err := h.Service.LatestAnalysis(r.Context(), r.URL.Query().Get("pipeline"))
	return answer(w, analysis, err)
}

func (h *Handler) explain(w http.ResponseWriter, r *http.Request) error {
	question, err := questionOf(r.URL.Query())
	if err != nil {
		return err
	}
	explanation, err := h.Service.Explain(r.Context(), question)
	return answer(w, explanation, err)
}

func (h *Handler) readers(w http.ResponseWriter, r *http.Request) error {
	request, err := readersRequestOf(r.URL.Query())
	if err != nil {
		return err
	}
	readers, err := h.Service.Readers(r.Context(), request)
	return answer(w, readers, err)
}

func (h *Handler) verify(w http.ResponseWriter, r *http.Request) error {
	verification, err := h.Audit.Verify(r.Context())
	return answer(w, verification, err)
}

func (h *Handler) facts(w http.ResponseWriter, r *http.Request) error {
	var change FactChange
	if err := read(w, r, maxBody, &change); err != nil {
		return err
	}
	if err := change.check(); err != nil {
		return err
	}
	result, err := h.Service.ChangeFacts(r.Context(), change)
	return answer(w, result, err)
}

func (h *Handler) mode(w http.ResponseWriter, r *http.Request) error {
	var request modeRequest
	if err := read(w, r, maxBody, &request); err != nil {
		return err
	}
	status, err := h.Service.SetMode(r.Context(), r.PathValue("pipeline"), request.Mode)
	return answer(w, status, err)
}

// task handles "name:start", "name:stop" and "name:wait".
func (h *Handler) task(w http.ResponseWriter, r *http.Request) error {
	name, verb, _ := strings.Cut(r.PathValue("do"), ":")
	actions := map[string]func(context.Context, string, string) (TaskStatus, error){
		"start": h.Service.StartTask, "stop": h.Service.StopTask, "wait": h.Service.WaitTask,
	}
	action, ok := actions[verb]
	if !ok {
		return NotFound("task "+name, "append :start, :stop or :wait to the task's name", "%q is not an action", verb)
	}
	ctx, cancel := UntilClosing(r.Context())
	defer cancel()
	status, err := action(ctx, r.PathValue("pipeline"), name)
	return answer(w, status, err)
}

func healthy(w http.ResponseWriter, _ *http.Request) error {
	_, err := io.WriteString(w, "ok\n")
	return err
}

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) error {
	if err := h.Service.Ready(r.Context()); err != nil {
		return Unavailable("ready", "wait, or see shai status", "%v", err)
	}
	_, err := io.WriteString(w, "ready\n")
	return err
}
