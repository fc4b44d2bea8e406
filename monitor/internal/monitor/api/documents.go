// SPDX-License-Identifier: BSD-2-Clause

package api

import (
	"context"
	"net/http"
	"strings"
)

// IngestRequest names files to catalogue as they are.
type IngestRequest struct {
	// Paths are those of files, or of directories with all beneath them: as pipelines name them,
	// or beneath the monitor's data directory.
	Paths []string `json:"paths"`
	// Remove says that the files are gone. Those that exist are refused.
	Remove bool `json:"remove,omitempty"`
}

// Limits on one request, and on its answer.
const (
	MaxIngestPaths = 10_000
	MaxRefused     = 100
)

// IngestResult says what has become of the files.
type IngestResult struct {
	Added     int `json:"added"`     // new documents
	Renewed   int `json:"renewed"`   // documents with new content: they have new numbers
	Removed   int `json:"removed"`   // documents that are gone
	Unchanged int `json:"unchanged"` // files that were catalogued as they are
	// RefusedTotal counts files that are no documents. Refused lists the first MaxRefused.
	RefusedTotal         int               `json:"refusedTotal"`
	Refused              []RefusedDocument `json:"refused,omitempty"`
	DurationMicroseconds int64             `json:"durationMicroseconds"`
}

// RefusedDocument is a path at which there is no document.
type RefusedDocument struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func (r IngestRequest) check() error {
	if len(r.Paths) == 0 || len(r.Paths) > MaxIngestPaths {
		return Invalid("ingest", "give 1 to 10 000 paths; more in several requests", "there are %d paths", len(r.Paths))
	}
	for _, path := range r.Paths {
		if !strings.HasPrefix(path, "/") {
			return Invalid("ingest", `give the path that the pipeline has, such as "/corpus/public/1.txt"`,
				"path %.200q does not begin with a slash", path)
		}
	}
	return nil
}

// ingestLine is one line of a running ingest. The last line holds the result or a problem.
type ingestLine struct {
	Progress *Progress     `json:"progress,omitempty"`
	Ingest   *IngestResult `json:"ingest,omitempty"`
	Problem  *Problem      `json:"problem,omitempty"`
}

func (l ingestLine) step() (*Progress, *IngestResult, *Problem) {
	return l.Progress, l.Ingest, l.Problem
}

func (h *Handler) ingest(w http.ResponseWriter, r *http.Request) error {
	var request IngestRequest
	if err := read(w, r, maxManifests, &request); err != nil {
		return err
	}
	if err := request.check(); err != nil {
		return err
	}
	return streamed(w, r, "ingest", func(ctx context.Context, progress func(Progress)) (any, error) {
		result, err := h.Service.Ingest(ctx, request, progress)
		return ingestLine{Ingest: &result}, err
	})
}

// Ingest implements [Calls].
func (c *Client) Ingest(ctx context.Context, request IngestRequest, progress func(Progress)) (IngestResult, error) {
	return follow[ingestLine](ctx, c, "/v1/documents", request, progress)
}

// Add adds the result of another request.
func (r *IngestResult) Add(other IngestResult) {
	r.Added += other.Added
	r.Renewed += other.Renewed
	r.Removed += other.Removed
	r.Unchanged += other.Unchanged
	r.RefusedTotal += other.RefusedTotal
	r.Refused = append(r.Refused, other.Refused[:min(len(other.Refused), MaxRefused-len(r.Refused))]...)
	r.DurationMicroseconds += other.DurationMicroseconds
}
