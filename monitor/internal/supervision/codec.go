// SPDX-License-Identifier: BSD-2-Clause

package supervision

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"

	"shai.dev/monitor/internal/wire"
)

// headerSize is that of type, version and size, which begin each record.
const headerSize = 8

// Encode makes a record's bytes. It fails if a text or a list does not fit, or could not
// be decoded again. The error wraps [ErrNotEncoded].
func Encode(record Record) ([]byte, error) {
	encoder := encoder{bytes: make([]byte, headerSize)}
	encoder.structure(reflect.ValueOf(record))
	if encoder.err == nil && len(encoder.bytes) > MaxRecord {
		encoder.fail("%d bytes, at most %d fit a record", len(encoder.bytes), MaxRecord)
	}
	if encoder.err != nil {
		return nil, fmt.Errorf("%w of type %T: %w", ErrNotEncoded, record, encoder.err)
	}
	binary.LittleEndian.PutUint16(encoder.bytes, uint16(record.Type()))
	binary.LittleEndian.PutUint16(encoder.bytes[2:], Version)
	binary.LittleEndian.PutUint32(encoder.bytes[4:], uint32(len(encoder.bytes))) //nolint:gosec // at most MaxRecord
	return encoder.bytes, nil
}

// Decode decodes a record that a supervisor sent. The error wraps [ErrMalformed] if the
// record's version, size or content differs from its header, or if supervisors do not send
// its type.
func Decode(record []byte) (Record, error) { return decode(record, fromSupervisor) }

func decode(record []byte, permitted []Record) (Record, error) {
	if len(record) < headerSize || len(record) > MaxRecord {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(record))
	}
	kind := Type(binary.LittleEndian.Uint16(record))
	if version := binary.LittleEndian.Uint16(record[2:]); version != Version {
		return nil, fmt.Errorf("%w: version %d, this side speaks %d", ErrMalformed, version, Version)
	}
	if size := binary.LittleEndian.Uint32(record[4:]); int64(size) != int64(len(record)) {
		return nil, fmt.Errorf("%w: header says %d bytes, got %d", ErrMalformed, size, len(record))
	}
	for _, empty := range permitted {
		if empty.Type() != kind {
			continue
		}
		result := reflect.New(reflect.TypeOf(empty)).Elem()
		decoder := decoder{rest: record[headerSize:]}
		decoder.structure(result)
		if decoder.err == nil && len(decoder.rest) > 0 {
			decoder.fail("%d bytes too many", len(decoder.rest))
		}
		if decoder.err != nil {
			return nil, fmt.Errorf("%w: type %d: %w", ErrMalformed, kind, decoder.err)
		}
		return result.Interface().(Record), nil
	}
	return nil, fmt.Errorf("%w: type %d is not sent in this direction", ErrMalformed, kind)
}

// number returns a number of a field's tag. Tags are constants of this package.
func number(field reflect.StructField, tag string) int {
	number, err := strconv.Atoi(field.Tag.Get(tag))
	if err != nil {
		panic(fmt.Sprintf("tag %s of field %s: %v", tag, field.Name, err))
	}
	return number
}

// encoder keeps the first error.
type encoder struct {
	bytes []byte
	err   error
}

func (e *encoder) structure(value reflect.Value) {
	for i := range value.NumField() {
		field, content := value.Type().Field(i), value.Field(i)
		switch {
		case field.Name == "_":
			e.bytes = append(e.bytes, make([]byte, field.Type.Size())...)
		case field.Tag.Get("count") != "":
			count := value.FieldByName(field.Tag.Get("count")).Len()
			if most := number(field, "max"); count > most {
				e.fail("%d %s, at most %d", count, field.Tag.Get("count"), most)
			}
			e.bytes = binary.LittleEndian.AppendUint32(e.bytes, uint32(count)) //nolint:gosec // limited above
		case content.Kind() == reflect.String:
			e.text(field, content.String())
		default:
			e.value(content)
		}
	}
}

// value encodes what is not text.
func (e *encoder) value(value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		e.structure(value)
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			e.value(value.Index(i))
		}
	default:
		var err error
		if e.bytes, err = binary.Append(e.bytes, binary.LittleEndian, value.Interface()); err != nil {
			e.fail("%v", err)
		}
	}
}

func (e *encoder) text(field reflect.StructField, text string) {
	size := number(field, "text")
	switch {
	case len(text) >= size:
		e.fail("%s is %d bytes, at most %d fit", field.Name, len(text), size-1)
		return
	case !wire.IsText(text):
		e.fail("%s %q is not UTF-8 text without NUL", field.Name, text)
	}
	e.bytes = append(append(e.bytes, text...), make([]byte, size-len(text))...)
}

func (e *encoder) fail(format string, arguments ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, arguments...)
	}
}

// decoder consumes a record and keeps the first error.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) structure(value reflect.Value) {
	counts := map[string]uint64{}
	for i := range value.NumField() {
		field, content := value.Type().Field(i), value.Field(i)
		switch {
		case field.Name == "_":
			if len(bytes.Trim(d.take(int(field.Type.Size())), "\x00")) > 0 {
				d.fail("something in a reserved field")
			}
		case content.Kind() == reflect.String:
			content.SetString(d.text(field))
		case content.Kind() == reflect.Slice:
			d.slice(content)
			if count, said := counts[field.Name]; said && uint64(content.Len()) != count { //nolint:gosec // a length
				d.fail("%d %s instead of %d", content.Len(), field.Name, count)
			}
		default:
			d.value(content)
			if name := field.Tag.Get("count"); name != "" {
				counts[name] = content.Uint()
				if most := number(field, "max"); content.Uint() > uint64(most) { //nolint:gosec // a constant
					d.fail("%d %s, at most %d", content.Uint(), name, most)
				}
			}
		}
	}
}

// slice decodes what follows a record: as many values as there are bytes for.
func (d *decoder) slice(value reflect.Value) {
	for len(d.rest) > 0 && d.err == nil {
		element := reflect.New(value.Type().Elem()).Elem()
		d.value(element)
		value.Set(reflect.Append(value, element))
	}
}

// value decodes what is neither text nor a slice.
func (d *decoder) value(value reflect.Value) {
	switch value.Kind() {
	case reflect.Struct:
		d.structure(value)
	case reflect.Array:
		for i := range value.Len() {
			d.value(value.Index(i))
		}
	default:
		size := int(value.Type().Size())
		if _, err := binary.Decode(d.take(size), binary.LittleEndian, value.Addr().Interface()); err != nil {
			d.fail("%v", err)
		}
	}
}

func (d *decoder) text(field reflect.StructField) string {
	text, padding, terminated := bytes.Cut(d.take(number(field, "text")), []byte{0})
	if !terminated || len(bytes.Trim(padding, "\x00")) != 0 || !utf8.Valid(text) {
		d.fail("%s is not NUL-padded UTF-8", field.Name)
	}
	return string(text)
}

// take consumes bytes; too few are an error, and then zeros.
func (d *decoder) take(size int) []byte {
	if d.err != nil || len(d.rest) < size {
		d.fail("%d bytes are too few", len(d.rest))
		return make([]byte, size)
	}
	taken := d.rest[:size]
	d.rest = d.rest[size:]
	return taken
}

func (d *decoder) fail(format string, arguments ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, arguments...)
	}
}
