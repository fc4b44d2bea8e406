// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"errors"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is one YAML document that is no object of a bundle, such as a file of tests, and
// the errors found in it.
type Document struct {
	decoder *decoder
	errors  Errors
}

// ReadDocument reads the only document of a source into target, a pointer to a struct with
// the tags of this package's kinds. It always returns a document: [Document.Err] has the
// errors, to which the caller may add its own.
func ReadDocument(source Source, target any) *Document {
	d := &Document{decoder: newDecoder(source.Name)}
	documents := yaml.NewDecoder(strings.NewReader(source.Text))
	var root, further yaml.Node
	switch err := documents.Decode(&root); {
	case errors.Is(err, io.EOF) || err == nil && isNull(root.Content[0]):
		d.Fail("", "", "the file is empty")
		return d
	case err != nil:
		d.errors = append(d.errors, syntaxError(source.Name, err))
		return d
	}
	d.decoder.value(root.Content[0], reflect.ValueOf(target).Elem(), "", rule{}, 0)
	switch err := documents.Decode(&further); {
	case err == nil:
		d.decoder.fail(&further, "", "move it to a file of its own", "there is a second document")
	case !errors.Is(err, io.EOF):
		d.errors = append(d.errors, syntaxError(source.Name, err))
	}
	d.errors = append(d.errors, d.decoder.errors...)
	return d
}

// Position returns where a field stands ("tests[2].principal"), or else where the nearest
// one around it does.
func (d *Document) Position(field string) Position {
	for {
		if position, known := d.decoder.positions[field]; known {
			return position
		}
		at := strings.LastIndexAny(field, ".[")
		if at < 0 {
			return Position{File: d.decoder.file, Line: 1, Column: 1}
		}
		field = field[:at]
	}
}

// Fail adds an error about a field.
func (d *Document) Fail(field, hint, format string, arguments ...any) {
	one := newDecoder(d.decoder.file)
	one.fail(&yaml.Node{}, field, hint, format, arguments...)
	one.errors[0].Position = d.Position(field)
	d.errors = append(d.errors, one.errors[0])
}

// Err returns all errors in the order of the file, as [Errors], or nil.
func (d *Document) Err() error { return d.errors.inOrder().orNil() }
