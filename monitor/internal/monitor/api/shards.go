// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Limits on the result of an analysis that is imported, and on the answer, in bytes and in time.
const (
	maxResult     = 1 << 30
	maxReport     = 8 << 20 // what a client reads of the answer
	resultTimeout = 10 * time.Minute
)

const (
	analysisWork    = "/v1/analyses/work"
	analysisResults = "/v1/analyses/results"
)

func (h *Handler) exportAnalysis(w http.ResponseWriter, r *http.Request) error {
	if err := known(r.URL.Query(), "pipeline"); err != nil {
		return err
	}
	work, size, err := h.Service.ExportAnalysis(r.Context(), r.URL.Query().Get("pipeline"))
	if err != nil {
		return err
	}
	defer work.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10)) // what is cut off is shorter
	_, err = io.Copy(w, work)
	return ignoreGone(err)
}

func (h *Handler) importAnalysis(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	if err := known(values, "pipeline", "basis"); err != nil {
		return err
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(resultTimeout))
	result, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxResult))
	if err != nil {
		return err
	}
	_ = control.SetReadDeadline(time.Time{})
	report, err := h.Service.ImportAnalysis(r.Context(), values.Get("pipeline"), values.Get("basis"), result)
	return answer(w, report, err)
}

// ExportAnalysis implements [Calls].
func (c *Client) ExportAnalysis(ctx context.Context, pipeline string) (io.ReadCloser, int64, error) {
	address := c.base + analysisWork + "?" + named(pipeline).Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("export analysis: %w", err)
	}
	response, err := c.answered(request)
	if err != nil {
		return nil, 0, err
	}
	return response.Body, response.ContentLength, nil
}

// ImportAnalysis implements [Calls].
func (c *Client) ImportAnalysis(ctx context.Context, pipeline, basis string, result []byte) (Analysis, error) {
	values := named(pipeline)
	values.Set("basis", basis)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+analysisResults+"?"+values.Encode(),
		bytes.NewReader(result))
	if err != nil {
		return Analysis{}, fmt.Errorf("import analysis: %w", err)
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := c.answered(request)
	if err != nil {
		return Analysis{}, err
	}
	defer response.Body.Close()
	var report Analysis
	if err := json.NewDecoder(io.LimitReader(response.Body, maxReport)).Decode(&report); err != nil {
		return Analysis{}, fmt.Errorf("read the answer to the import of an analysis: %w", err)
	}
	return report, nil
}

func named(pipeline string) url.Values {
	values := url.Values{}
	if pipeline != "" {
		values.Set("pipeline", pipeline)
	}
	return values
}
