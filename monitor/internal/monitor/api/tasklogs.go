// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// TaskLogRequest asks for what a task has printed.
type TaskLogRequest struct {
	Pipeline, Task string
	// As is the principal for whom it is read, who has to be allowed to read it. Empty: the
	// administrator who makes the request.
	As     string
	Region string // that As is in
	// Previous: what was printed under the label before the present one.
	Previous bool
}

// TaskLog is what a task has printed since it has its present label.
type TaskLog struct {
	Label string `json:"label"` // the obligations on it
	// Text is the last MiB at most. Bytes that are not UTF-8 are replaced.
	Text      string `json:"text"`
	Shortened bool   `json:"shortened,omitempty"` // there is more before it
}

func (r TaskLogRequest) path() string {
	return "/v1/pipelines/" + url.PathEscape(r.Pipeline) + "/tasks/" + url.PathEscape(r.Task) + "/log"
}

func (h *Handler) taskLog(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	if err := known(values, "as", "region", "previous"); err != nil {
		return err
	}
	request := TaskLogRequest{Pipeline: r.PathValue("pipeline"), Task: r.PathValue("task"),
		As: values.Get("as"), Region: values.Get("region")}
	if text := values.Get("previous"); text != "" {
		var err error
		if request.Previous, err = strconv.ParseBool(text); err != nil {
			return badParameter("previous", "%q is neither true nor false", text)
		}
	}
	if request.As == "" && (request.Region != "" || values.Has("as")) {
		return badParameter("as", "it is missing")
	}
	log, err := h.Service.TaskLog(r.Context(), request)
	return answer(w, log, err)
}

// TaskLog implements [Calls].
func (c *Client) TaskLog(ctx context.Context, request TaskLogRequest) (TaskLog, error) {
	values := url.Values{}
	if request.As != "" {
		values.Set("as", request.As)
	}
	if request.Region != "" {
		values.Set("region", request.Region)
	}
	if request.Previous {
		values.Set("previous", "true")
	}
	return call[TaskLog](ctx, c, http.MethodGet, request.path(), values, nil)
}
