// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// publishAll sends the findings in all open documents: a change of one may mend another, which
// includes its policies.
func (s *Server) publishAll(ctx context.Context) error {
	for _, uri := range slices.Sorted(maps.Keys(s.open)) {
		d := s.open[uri]
		found := []diagnostic{}
		switch {
		case isPolicyFile(d.path):
			found = s.findings(d)
		case manifest.IsManifest(filepath.Base(d.path)):
			found = s.findingsInManifest(d)
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
		list = append(list, policy.Lint(s.surroundings(filepath.Dir(d.path)), files...)...)
	}
	return d.shown(list)
}

// findingsInManifest are what shai policy lint says about a manifest among those beside it.
func (s *Server) findingsInManifest(d *document) []diagnostic {
	report, err := s.report(filepath.Dir(d.path))
	if err != nil {
		return []diagnostic{{Severity: 1, Source: "shai",
			Message: "the policies are not checked: a manifest in this directory cannot be read\n" + err.Error()}}
	}
	return d.shown(report.Findings())
}

// shown gives those findings that are in the document the form of the protocol.
func (d *document) shown(list []policy.Diagnostic) []diagnostic {
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
func (s *Server) surroundings(directory string) policy.Surroundings {
	report, err := s.report(directory)
	if err != nil || len(report.Errors) > 0 {
		return policy.Surroundings{}
	}
	return report.Surroundings
}
