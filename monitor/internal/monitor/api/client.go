// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/pemfile"
)

// Target selects the monitor to talk to: a socket on this machine, or an address.
type Target struct {
	Socket      string
	Server      string // host:port; used instead of Socket when given
	Certificate string // PEM files of the client, and of the server's authority
	Key         string
	ServerCA    string
}

// Client talks to a monitor, whose [Service] answers its [Calls].
type Client struct {
	http *http.Client
	base string
	name string // of the target, for errors
}

var _ Calls = (*Client)(nil)

// maxMetrics limits what a client reads of a monitor's metrics, in bytes.
const maxMetrics = 64 << 20

// Connect makes a client. It connects only when it sends the first request.
func Connect(target Target) (*Client, error) {
	if target.Server == "" {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", target.Socket)
		}
		return &Client{
			http: &http.Client{Transport: &http.Transport{DialContext: dial}},
			base: "http://monitor", name: target.Socket,
		}, nil
	}
	if target.Certificate == "" || target.Key == "" || target.ServerCA == "" {
		return nil, fmt.Errorf("connect to %s: --server needs --certificate, --key and --server-ca", target.Server)
	}
	certificate, err := pemfile.Pair(target.Certificate, target.Key)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: read client certificate %q and key %q: %w", target.Server,
			target.Certificate, target.Key, err)
	}
	authorities, err := pemfile.Authorities(target.ServerCA)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", target.Server, err)
	}
	return &Client{
		http: &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{
				Certificates: []tls.Certificate{certificate}, RootCAs: authorities, MinVersion: tls.VersionTLS13,
			},
		}},
		base: "https://" + target.Server, name: target.Server,
	}, nil
}

// send makes a request and returns the body of a successful answer. The caller closes it.
func (c *Client) send(ctx context.Context, method, path string, values url.Values, body any) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	address := c.base + path
	if len(values) > 0 {
		address += "?" + values.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.answered(request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// answered makes a request and returns the successful answer. The caller closes its body.
func (c *Client) answered(request *http.Request) (*http.Response, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	return nil, readProblem(response)
}

// unreachable returns the error about a monitor that does not answer.
func (c *Client) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the wrapper, which has an address that the user never wrote
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	remedy := "start it with shai monitor, or give --socket or --server"
	if errors.Is(err, fs.ErrPermission) {
		remedy = "only the monitor's user and root may use its socket"
	}
	return &Problem{Title: "connect to the monitor at " + c.name, Status: http.StatusServiceUnavailable,
		Detail: err.Error(), Remedy: remedy}
}

func readProblem(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	problem := new(Problem)
	if err := json.Unmarshal(text, problem); err != nil || problem.Title == "" {
		return &Problem{Title: "read the monitor's answer", Status: response.StatusCode,
			Detail: fmt.Sprintf("%s: %.200s", response.Status, text), Remedy: "is it a Shai monitor of this version?"}
	}
	return problem
}

// call makes a request and decodes its answer.
func call[T any](ctx context.Context, c *Client, method, path string, values url.Values, body any) (T, error) {
	var value T
	content, err := c.send(ctx, method, path, values, body)
	if err != nil {
		return value, err
	}
	defer content.Close()
	if err := json.NewDecoder(content).Decode(&value); err != nil {
		return value, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return value, nil
}

// Apply implements [Calls].
func (c *Client) Apply(ctx context.Context, request ApplyRequest) (ApplyResult, error) {
	return call[ApplyResult](ctx, c, http.MethodPost, "/v1/bundles", nil, request)
}

// Status implements [Calls].
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, http.MethodGet, "/v1/status", nil, nil)
}

// LatestAnalysis implements [Calls].
func (c *Client) LatestAnalysis(ctx context.Context, pipeline string) (Analysis, error) {
	return call[Analysis](ctx, c, http.MethodGet, "/v1/analyses/latest", named(pipeline), nil)
}

// Explain implements [Calls].
func (c *Client) Explain(ctx context.Context, question Question) (Explanation, error) {
	return call[Explanation](ctx, c, http.MethodGet, "/v1/explain", questionValues(question), nil)
}

// Readers implements [Calls].
func (c *Client) Readers(ctx context.Context, request ReadersRequest) (Readers, error) {
	return call[Readers](ctx, c, http.MethodGet, "/v1/readers", request.values(), nil)
}

// ChangeFacts implements [Calls].
func (c *Client) ChangeFacts(ctx context.Context, change FactChange) (FactResult, error) {
	return call[FactResult](ctx, c, http.MethodPost, "/v1/facts", nil, change)
}

// SetMode implements [Calls].
func (c *Client) SetMode(ctx context.Context, pipeline, mode string) (PipelineStatus, error) {
	path := "/v1/pipelines/" + url.PathEscape(pipeline) + "/mode"
	return call[PipelineStatus](ctx, c, http.MethodPut, path, nil, modeRequest{mode})
}

// StartTask implements [Calls].
func (c *Client) StartTask(ctx context.Context, pipeline, task string) (TaskStatus, error) {
	return c.task(ctx, pipeline, task, "start")
}

// StopTask implements [Calls].
func (c *Client) StopTask(ctx context.Context, pipeline, task string) (TaskStatus, error) {
	return c.task(ctx, pipeline, task, "stop")
}

// WaitTask implements [Calls].
func (c *Client) WaitTask(ctx context.Context, pipeline, task string) (TaskStatus, error) {
	return c.task(ctx, pipeline, task, "wait")
}

func (c *Client) task(ctx context.Context, pipeline, task, verb string) (TaskStatus, error) {
	path := "/v1/pipelines/" + url.PathEscape(pipeline) + "/tasks/" + url.PathEscape(task) + ":" + verb
	return call[TaskStatus](ctx, c, http.MethodPost, path, nil, nil)
}

// Analyze implements [Calls].
func (c *Client) Analyze(ctx context.Context, request AnalyzeRequest, progress func(Progress)) (Analysis, error) {
	return follow[analysisLine](ctx, c, "/v1/analyses", request, progress)
}

// Metrics returns the monitor's metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	content, err := c.send(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, maxMetrics+1))
	if err != nil {
		return nil, fmt.Errorf("read the monitor's metrics: %w", err)
	}
	if len(text) > maxMetrics {
		return nil, fmt.Errorf("read the monitor's metrics: they are larger than %d bytes", maxMetrics)
	}
	return text, nil
}

// Query reads the monitor's audit log, as [audit.Log.Query] does.
func (c *Client) Query(ctx context.Context, query audit.Query, each func(audit.Record) error) error {
	content, err := c.send(ctx, http.MethodGet, "/v1/audit", auditValues(query), nil)
	if err != nil {
		return err
	}
	defer content.Close()
	for lines := json.NewDecoder(content); ; {
		var line auditLine
		err := lines.Decode(&line)
		switch {
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("read audit records: %w", err)
		case line.Problem != nil:
			return line.Problem
		case line.Record != nil:
			if err := each(*line.Record); err != nil {
				return err
			}
		}
	}
}

// Verify checks the monitor's audit log.
func (c *Client) Verify(ctx context.Context) (audit.Verification, error) {
	return call[audit.Verification](ctx, c, http.MethodGet, "/v1/audit/verification", nil, nil)
}
