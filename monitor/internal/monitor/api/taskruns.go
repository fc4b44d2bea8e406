// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"shai.dev/monitor/internal/pipeline"
)

// TaskRun is one run of a task.
type TaskRun = pipeline.Run

// TaskRefusal is a kind of access that was denied during a run.
type TaskRefusal = pipeline.Refusal

// MaxRunID is the longest identity of a run, in bytes.
const MaxRunID = 128

// TaskRunRequest names a run of a task.
type TaskRunRequest struct {
	Pipeline, Task string
	ID             string // that the one who starts it gives it, at most MaxRunID bytes
	// Started is when the monitor started ([Status]), if the request is for no later life of it; zero:
	// for any.
	Started time.Time
}

// PreconditionFailed returns the problem of a request that is for another state than the present
// one.
func PreconditionFailed(title, remedy, format string, arguments ...any) *Problem {
	return &Problem{Title: title, Status: http.StatusPreconditionFailed, Detail: fmt.Sprintf(format, arguments...),
		Remedy: remedy}
}

func (r TaskRunRequest) path() string {
	return "/v1/pipelines/" + url.PathEscape(r.Pipeline) + "/tasks/" + url.PathEscape(r.Task) + "/runs/" +
		url.PathEscape(r.ID)
}

func taskRunRequestOf(r *http.Request) (TaskRunRequest, error) {
	values := r.URL.Query()
	if err := known(values, "started"); err != nil {
		return TaskRunRequest{}, err
	}
	request := TaskRunRequest{Pipeline: r.PathValue("pipeline"), Task: r.PathValue("task"), ID: r.PathValue("run")}
	if len(request.ID) > MaxRunID {
		return request, badParameter("run", "it has %d bytes, and may have %d", len(request.ID), MaxRunID)
	}
	if text := values.Get("started"); text != "" {
		var err error
		if request.Started, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return request, badParameter("started", "%q is not an RFC 3339 time", text)
		}
	}
	return request, nil
}

// taskRun answers a request for a run by one of the methods for runs.
func (h *Handler) taskRun(
	do func(Service, context.Context, TaskRunRequest) (TaskRun, error),
) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		request, err := taskRunRequestOf(r)
		if err != nil {
			return err
		}
		ctx, cancel := UntilClosing(r.Context())
		defer cancel()
		run, err := do(h.Service, ctx, request)
		return answer(w, run, err)
	}
}

// StartRun implements [Calls].
func (c *Client) StartRun(ctx context.Context, request TaskRunRequest) (TaskRun, error) {
	return c.run(ctx, http.MethodPut, request)
}

// AwaitRun implements [Calls].
func (c *Client) AwaitRun(ctx context.Context, request TaskRunRequest) (TaskRun, error) {
	return c.run(ctx, http.MethodGet, request)
}

// StopRun implements [Calls].
func (c *Client) StopRun(ctx context.Context, request TaskRunRequest) (TaskRun, error) {
	return c.run(ctx, http.MethodDelete, request)
}

func (c *Client) run(ctx context.Context, method string, request TaskRunRequest) (TaskRun, error) {
	values := url.Values{}
	if !request.Started.IsZero() {
		values.Set("started", request.Started.Format(time.RFC3339Nano))
	}
	return call[TaskRun](ctx, c, method, request.path(), values, nil)
}
