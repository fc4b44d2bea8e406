// SPDX-License-Identifier: BSD-2-Clause

// Package codec encodes numbers and texts in the monitor's own files. Numbers are
// unsigned varints, or 8 bytes (big-endian) if their order or size matters. A text is its
// length and its bytes. The package does no input or output.
package codec

import "encoding/binary"

// AppendNumber appends a number of variable length.
func AppendNumber(out []byte, number uint64) []byte { return binary.AppendUvarint(out, number) }

// AppendFixed appends a number of 8 bytes.
func AppendFixed(out []byte, number uint64) []byte { return binary.BigEndian.AppendUint64(out, number) }

// AppendText appends a text.
func AppendText(out []byte, text string) []byte {
	return append(AppendNumber(out, uint64(len(text))), text...)
}

// Reader reads what was appended. The first malformed byte breaks it: from then on it
// yields zeros, and Broken returns true. It is not safe for concurrent use.
type Reader struct {
	rest   []byte
	broken bool
	shared map[string]string
}

// NewReader returns a reader of content, which it keeps.
func NewReader(content []byte) *Reader { return &Reader{rest: content} }

// Share makes equal texts share memory: with those in the map, to which new ones are
// added.
func (r *Reader) Share(texts map[string]string) *Reader {
	r.shared = texts
	return r
}

// Rest returns the bytes that are still to be read.
func (r *Reader) Rest() []byte { return r.rest }

// Broken reports whether the content was malformed.
func (r *Reader) Broken() bool { return r.broken }

// Break marks the content as malformed.
func (r *Reader) Break() { r.broken, r.rest = true, nil }

// Bytes reads that many bytes. The result is part of the content. It is nil if there are
// fewer.
func (r *Reader) Bytes(count uint64) []byte {
	if count > uint64(len(r.rest)) {
		r.Break()
		return nil
	}
	out := r.rest[:count]
	r.rest = r.rest[count:]
	return out
}

// Number reads a number of variable length.
func (r *Reader) Number() uint64 {
	value, used := binary.Uvarint(r.rest)
	if used <= 0 {
		r.Break()
		return 0
	}
	r.rest = r.rest[used:]
	return value
}

// Count reads a number of elements that take at least size bytes each; size is at least
// 1. It returns no more than there is room for, so that the caller can allocate memory
// for them.
func (r *Reader) Count(size int) int {
	count := r.Number()
	if count > uint64(len(r.rest)/size) { //nolint:gosec // a length is never negative
		r.Break()
		return 0
	}
	return int(count) //nolint:gosec // bounded above
}

// Fixed reads a number of 8 bytes.
func (r *Reader) Fixed() uint64 {
	if raw := r.Bytes(8); raw != nil {
		return binary.BigEndian.Uint64(raw)
	}
	return 0
}

// Text reads a text.
func (r *Reader) Text() string {
	raw := r.Bytes(r.Number())
	if known, ok := r.shared[string(raw)]; ok {
		return known
	}
	text := string(raw)
	if r.shared != nil {
		r.shared[text] = text
	}
	return text
}
