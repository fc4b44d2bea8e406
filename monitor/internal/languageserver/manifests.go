// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

func isPolicyFile(path string) bool { return filepath.Ext(path) == ".pol" }

// part says whose text a part of a manifest is.
type part struct {
	object   string    // the Policy's name
	named    textRange // where it gets it
	from, to position  // the text, with the whole line that follows it
}

// divide finds the texts of the Policies in a manifest. One that is no YAML has none.
func (d *document) divide() {
	for _, text := range manifest.Parse(manifest.Source{Name: d.path, Text: d.text}).PolicyTexts() {
		one := &document{uri: d.uri, path: d.path, version: d.version, text: text.Text, lines: d.lines, utf8: d.utf8,
			tokens: policy.Tokens([]byte(text.Text))}
		one.outline = outlineOf(one.tokens)
		for i := range one.tokens {
			r := &one.tokens[i].Range
			_, r.From = text.Place(r.From)
			_, r.To = text.Place(r.To)
		}
		first, last := text.Position(1, 1), text.Position(strings.Count(text.Text, "\n")+1, 1)
		named := textRange{d.place(text.Named.Line, text.Named.Column),
			d.place(text.Named.Line, text.Named.Column+len(text.Object))}
		one.part = &part{object: text.Object, named: named, from: d.place(first.Line, first.Column),
			to: position{Line: last.Line - 1}}
		d.parts = append(d.parts, one)
	}
}

// textAt returns the document, or of a manifest the text that has a place; nil if none has it.
func (d *document) textAt(at position) *document {
	if isPolicyFile(d.path) {
		return d
	}
	for _, one := range d.parts {
		if one.part.from.Line <= at.Line && at.Line <= one.part.to.Line && one.part.from.Character <= at.Character {
			return one
		}
	}
	return nil
}

// parse returns the policies of the document's text, or of another in its place, with the names by which
// others include them.
func (d *document) parse(text string) (*policy.File, error) {
	if d.part == nil {
		return policy.Parse(d.path, []byte(text))
	}
	file, err := policy.ParseOne(d.path, []byte(text))
	if err == nil {
		file.Policies[0].Name = d.part.object
	}
	return file, err
}

// policies lists the names by which others include the policies of a text.
func (d *document) policies() (names []string) {
	if d.part != nil {
		return []string{d.part.object}
	}
	for _, one := range d.outline {
		if one.name >= 0 {
			names = append(names, d.tokens[one.name].Text)
		}
	}
	return names
}

// declared lists where a text declares a policy that others include by a name.
func (d *document) declared(name string) (places []textRange) {
	at, _ := d.policyUses(name)
	for _, number := range at {
		places = append(places, d.rangeOf(d.tokens[number].Range))
	}
	if d.part == nil {
		return places
	}
	if name != d.part.object {
		return nil // includes go by the objects' names
	}
	if len(places) == 0 {
		places = append(places, d.part.named)
	}
	return places
}

// sources are the manifests of a directory, as the editor has them if they are open.
func (s *Server) sources(directory string) ([]manifest.Source, error) {
	texts := map[string]string{}
	for _, d := range s.open {
		if filepath.Dir(d.path) == directory && manifest.IsManifest(filepath.Base(d.path)) {
			if _, err := manifest.ReadAll(d.path, strings.NewReader(d.text)); err != nil {
				return nil, err
			}
			texts[d.path] = d.text
		}
	}
	entries, err := os.ReadDir(directory)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(directory, entry.Name())
		if _, open := texts[name]; open || entry.IsDir() || !manifest.IsManifest(entry.Name()) {
			continue
		}
		read, err := manifest.Read(strings.NewReader(""), name)
		if err != nil {
			return nil, err
		}
		texts[name] = read[0].Text
	}
	var all []manifest.Source
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		all = append(all, manifest.Source{Name: name, Text: texts[name]})
	}
	return all, nil
}

// report checks the manifests of a directory together.
func (s *Server) report(directory string) (manifest.Report, error) {
	sources, err := s.sources(directory)
	if err != nil {
		return manifest.Report{}, err
	}
	return manifest.Parse(sources...).Report()
}

// besideInManifests returns a text of a manifest, and those of all manifests in its directory.
func (s *Server) besideInManifests(d *document) []*document {
	all := []*document{d}
	sources, err := s.sources(filepath.Dir(d.path))
	if err != nil {
		return all // the diagnostics say so
	}
	for _, source := range sources {
		uri := uriOf(source.Name)
		whole := s.open[uri]
		if whole == nil {
			whole = newDocument(uri, source.Text, 0, s.utf8)
		}
		all = append(all, slices.DeleteFunc(slices.Clone(whole.parts), func(one *document) bool { return one == d })...)
	}
	return all
}
