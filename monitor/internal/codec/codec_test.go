// SPDX-License-Identifier: BSD-2-Clause

package codec

import (
	"bytes"
	"testing"
)

func TestWhatWasAppendedIsRead(t *testing.T) {
	var out []byte
	out = AppendNumber(out, 300)
	out = AppendText(out, "")
	out = AppendText(out, "ä b")
	out = AppendFixed(out, 1<<63)
	out = append(out, 7)
	r := NewReader(out)
	if n, empty, text, fixed := r.Number(), r.Text(), r.Text(), r.Fixed(); n != 300 || empty != "" || text != "ä b" ||
		fixed != 1<<63 {
		t.Errorf("%d, %q, %q, %d", n, empty, text, fixed)
	}
	if last := r.Bytes(1); r.Broken() || !bytes.Equal(last, []byte{7}) || len(r.Rest()) != 0 {
		t.Errorf("%v, then %v, broken %v", last, r.Rest(), r.Broken())
	}
}

// A reader never yields more than there is, and stays broken.
func TestMalformed(t *testing.T) {
	for name, test := range map[string]struct {
		content []byte
		read    func(*Reader)
	}{
		"number without its end": {[]byte{0x80}, func(r *Reader) { r.Number() }},
		"number beyond 64 bits":  {bytes.Repeat([]byte{0xff}, 11), func(r *Reader) { r.Number() }},
		"text longer than all":   {[]byte{5, 'a'}, func(r *Reader) { r.Text() }},
		"more things than fit":   {[]byte{2, 0, 0, 0}, func(r *Reader) { r.Count(2) }},
		"seven bytes":            {make([]byte, 7), func(r *Reader) { r.Fixed() }},
	} {
		r := NewReader(test.content)
		test.read(r)
		if !r.Broken() || r.Text() != "" || r.Fixed() != 0 || r.Bytes(1) != nil {
			t.Errorf("%s: not broken", name)
		}
	}
	if r := NewReader([]byte{2, 0, 0, 0, 0}); r.Count(2) != 2 || r.Broken() {
		t.Error("two things of two bytes do not fit four bytes")
	}
}

func TestSharedTexts(t *testing.T) {
	known := map[string]string{}
	out := AppendText(AppendText(nil, "alice"), "alice")
	r := NewReader(out).Share(known)
	if first, second := r.Text(), r.Text(); first != "alice" || second != "alice" || len(known) != 1 {
		t.Errorf("%q, %q, %v", first, second, known)
	}
}
