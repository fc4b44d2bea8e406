// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// publishAll sends the findings in all open documents: a change of one may mend another, which
// includes its policies.
func (s *Server) publishAll(ctx context.Context) error {
	for _, uri := range slices.Sorted(maps.Keys(s.open)) {
		d := s.open[uri]
		found := []diagnostic{}
		if strings.HasSuffix(d.path, ".pol") {
			found = s.findings(d)
		}
		err := s.rpc.Notify(ctx, "textDocument/publishDiagnostics",
			publishParams{URI: uri, Version: d.version, Diagnostics: found})
		if err != nil {
			return err
		}
	}
	return nil
}

// findings are what shai policy lint says about a document among the files beside it.
func (s *Server) findings(d *document) []diagnostic {
	file, mistakes := policy.ParseAll(d.path, []byte(d.text))
	list := mistakes.Diagnostics()
	if len(mistakes) == 0 {
		files := []*policy.File{file}
		for _, other := range s.beside(d)[1:] {
			if parsed, err := policy.Parse(other.path, []byte(other.text)); err == nil {
				files = append(files, parsed)
			}
		}
		list = append(list, policy.Lint(surroundings(filepath.Dir(d.path)), files...)...)
	}
	found := []diagnostic{}
	for _, one := range list {
		if one.File != d.path {
			continue
		}
		severity := 2
		if one.Severity == policy.SeverityError {
			severity = 1
		}
		message := one.Message
		if one.Remedy != "" {
			message += "\n" + one.Remedy
		}
		found = append(found, diagnostic{
			Range:    textRange{d.place(one.Line, one.Column), d.place(one.EndLine, one.EndColumn)},
			Severity: severity, Code: string(one.Code), Source: "shai", Message: message,
		})
	}
	return found
}

// surroundings are the relations, tasks and principals that manifests in a directory declare.
// Without manifests, or if these have mistakes, nothing is known.
func surroundings(directory string) policy.Surroundings {
	sources, err := manifest.Read(strings.NewReader(""), directory)
	if err != nil {
		return policy.Surroundings{}
	}
	report, err := manifest.Parse(sources...).Report()
	if err != nil || len(report.Errors) > 0 {
		return policy.Surroundings{}
	}
	return report.Surroundings
}
