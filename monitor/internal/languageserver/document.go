// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// document is a policy file or a manifest that is open in the editor or beside one that is, or the text
// of one Policy in a manifest: its tokens stand where they do in the file.
type document struct {
	uri     string
	path    string
	version int
	text    string
	lines   []string
	tokens  []policy.Token
	outline []declaration
	utf8    bool        // positions count bytes, not UTF-16 units
	parts   []*document // the texts of a manifest's Policies
	part    *part       // of the text of a Policy
}

func newDocument(uri, text string, version int, inBytes bool) *document {
	d := &document{uri: uri, path: pathOf(uri), version: version, utf8: inBytes}
	whole := d.keep(text)
	switch {
	case !whole:
	case isPolicyFile(d.path):
		d.tokens = policy.Tokens([]byte(text))
		d.outline = outlineOf(d.tokens)
	case manifest.IsManifest(filepath.Base(d.path)):
		d.divide()
	}
	return d
}

// keep reports whether a text may be as long as it is. Of one that may not, it keeps one byte more than may be:
// for that it is refused wherever it is read.
func (d *document) keep(text string) bool {
	most := 0 // of other files, nothing is used
	if isPolicyFile(d.path) {
		most = policy.MaxText
	} else if manifest.IsManifest(filepath.Base(d.path)) {
		most = manifest.MaxSize
	}
	whole := len(text) <= most
	if !whole {
		text = text[:most+1]
	}
	d.text, d.lines = text, strings.Split(text, "\n")
	return whole
}

// pathOf returns the file that a URI names; the URI itself if it names none.
func pathOf(uri string) string {
	parsed, err := url.Parse(uri)
	if err != nil || parsed.Scheme != "file" {
		return uri
	}
	return filepath.FromSlash(parsed.Path)
}

// uriOf is the inverse of pathOf.
func uriOf(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// rangeOf translates a range of the policy language, which counts bytes from 1.
func (d *document) rangeOf(r policy.Range) textRange {
	return textRange{d.place(int(r.From.Line), int(r.From.Column)), d.place(int(r.To.Line), int(r.To.Column))}
}

// place translates a line and a column in bytes, both from 1.
func (d *document) place(line, column int) position {
	at := position{Line: max(line-1, 0), Character: max(column-1, 0)}
	if d.utf8 || at.Line >= len(d.lines) {
		return at
	}
	text := d.lines[at.Line]
	at.Character = units(text[:min(at.Character, len(text))])
	return at
}

// units is the length of a text in UTF-16.
func units(text string) int {
	length := 0
	for _, character := range text {
		length++
		if character > 0xffff {
			length++
		}
	}
	return length
}

// column translates a position of the editor to a column in bytes, from 1.
func (d *document) column(at position) int {
	if d.utf8 || at.Line < 0 || at.Line >= len(d.lines) {
		return at.Character + 1
	}
	text, left, bytes := d.lines[at.Line], at.Character, 0
	for left > 0 && bytes < len(text) {
		character, size := utf8.DecodeRuneInString(text[bytes:])
		left -= units(string(character))
		bytes += size
	}
	return bytes + 1
}

// tokenAt returns the number of the word that touches a position. ok is false if there is none.
func (d *document) tokenAt(at position) (number int, ok bool) {
	line, column := int32(at.Line)+1, int32(d.column(at)) //nolint:gosec // texts are limited far below 2^31
	for i, token := range d.tokens {
		if token.Range.From.Line == line && token.Range.From.Column <= column && column <= token.Range.To.Column &&
			(token.Kind != policy.TokenSymbol || column < token.Range.To.Column) {
			if token.Kind == policy.TokenSymbol {
				continue
			}
			return i, true
		}
	}
	return 0, false
}

// before returns how many tokens end before a position, apart from the word that ends there.
func (d *document) before(at position) int {
	line, column := int32(at.Line)+1, int32(d.column(at)) //nolint:gosec // texts are limited far below 2^31
	for i, token := range d.tokens {
		from := token.Range.From
		to := token.Range.To
		if from.Line > line || from.Line == line && from.Column >= column {
			return i
		}
		isWord := token.Kind == policy.TokenName || token.Kind == policy.TokenVariable
		if isWord && from.Line == line && to.Column >= column {
			return i
		}
	}
	return len(d.tokens)
}

// whole is the range of the whole text.
func (d *document) whole() textRange {
	last := len(d.lines)
	return textRange{position{}, d.place(last, len(d.lines[last-1])+1)}
}
