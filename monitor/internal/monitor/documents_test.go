// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"shai.dev/monitor/internal/monitor/api"
)

// ingest catalogues files as they are.
func (s *stack) ingest(request api.IngestRequest) api.IngestResult {
	s.t.Helper()
	result, err := s.monitor.Ingest(context.Background(), request, func(api.Progress) {})
	s.must(err)
	return result
}

// ingests makes files, or with "replaced" or "removed" replaces or removes them, and catalogues
// them.
func (p *player) ingests(arguments string) string {
	p.t.Helper()
	how, rest, _ := strings.Cut(arguments, " ")
	request := api.IngestRequest{}
	for _, name := range strings.Fields(rest) {
		path := filepath.Join(p.options.Data, name)
		switch how {
		case "removed":
			p.must(os.Remove(path))
			request.Remove = true
		case "replaced":
			p.must(os.Rename(path, path+".old"))
			p.document(name)
			p.must(os.WriteFile(path, []byte(name+", again\nthe text\n"), 0o644))
			p.must(os.Remove(path + ".old"))
		case "new":
			p.document(name)
		}
		request.Paths = append(request.Paths, name)
	}
	result := p.ingest(request)
	return fmt.Sprintf("%d added, %d renewed, %d removed", result.Added, result.Renewed, result.Removed)
}

// follows runs the background analysis of new classes.
func (p *player) follows(string) string {
	p.t.Helper()
	p.monitor.decidePostponed(context.Background())
	p.awaitIdle()
	return ""
}
