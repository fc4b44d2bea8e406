// SPDX-License-Identifier: BSD-2-Clause

package distribution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"shai.dev/monitor/internal/analysis"
)

// maxRefusal limits what a worker reads of a refusal, in bytes.
const maxRefusal = 1024

// Worker is the side that computes.
type Worker struct {
	base   string
	client *http.Client
}

// NewWorker makes a worker for the coordinator at an address, such as 192.0.2.1:4567. The directory
// has this side's identity. It connects only when it asks for something.
func NewWorker(address, directory string) (*Worker, error) {
	config, err := clientTLS(directory)
	if err != nil {
		return nil, err
	}
	return &Worker{"https://" + address, &http.Client{Transport: &http.Transport{TLSClientConfig: config}}}, nil
}

// Fetch writes the work into a file in a directory that the caller removes, and returns its path.
func (w *Worker) Fetch(ctx context.Context, directory string, most int64) (string, error) {
	response, err := w.do(ctx, http.MethodGet, pathWork, nil, http.StatusOK)
	if err != nil {
		return "", fmt.Errorf("fetch the work: %w", err)
	}
	defer response.Body.Close()
	if response.ContentLength > most {
		return "", fmt.Errorf("fetch the work: it has %d MiB, and %d are the limit; raise the limit of this worker",
			response.ContentLength>>20, most>>20)
	}
	path := filepath.Join(directory, "work")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("fetch the work: %w", err)
	}
	written, err := io.Copy(file, io.LimitReader(response.Body, most))
	if err == nil && written != response.ContentLength {
		err = fmt.Errorf("%d of %d bytes arrived", written, response.ContentLength)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("fetch the work: %w", err)
	}
	return path, nil
}

// Send returns the result of a shard to the coordinator.
func (w *Worker) Send(ctx context.Context, shard analysis.Shard, result []byte) error {
	response, err := w.do(ctx, http.MethodPut, pathShards+shard.String(), bytes.NewReader(result), http.StatusNoContent)
	if err != nil {
		return fmt.Errorf("send the result of shard %s: %w", shard, err)
	}
	return response.Body.Close()
}

func (w *Worker) do(ctx context.Context, method, path string, body io.Reader, wanted int) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.base+path, body)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != wanted {
		why, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		return nil, errors.Join(fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(why))),
			response.Body.Close())
	}
	return response, nil
}
