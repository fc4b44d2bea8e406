// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"errors"
	"io"
	"strings"
	"testing"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// endless is a header without an end.
type endless struct{}

func (endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = '1'
	}
	return len(into), nil
}

// Without the limits, these inputs end the program: it runs out of memory, or makes a slice that is too long.
func TestBrokenFramesEndInErrors(t *testing.T) {
	for input, want := range map[string]error{
		"Content-Length: 9223372036854775807\r\n\r\n{}":                     errLongMessage,
		"Content-Length: 99999999999999999999999\r\n\r\n{}":                 errLongMessage,
		"Content-Length: 1099511627776\r\n\r\n{}":                           errLongMessage,
		"Content-Length: -5\r\n\r\n{}":                                      errNoLength,
		"X: y\r\n\r\n{}":                                                    errNoLength,
		"\r\n\r\n{}":                                                        errNoLength,
		"GET / HTTP/1.1\r\n\r\n":                                            errHeader,
		"Content-Length: 5\r\n\r\n{}":                                       errPartOfMessage,
		"Content-Len":                                                       errPartOfMessage,
		strings.Repeat("X: y\r\n", maxHeader/6+1) + "\r\n":                  errLongHeader,
		strings.Repeat("X: y\r\n", maxHeader/7) + "Content-Length: 2\r\n\r": errPartOfMessage,
	} {
		if err := Serve(t.Context(), strings.NewReader(input), discarded{}); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", input, err, want)
		}
	}
	without := io.MultiReader(strings.NewReader("Content-Length: "), endless{})
	if err := Serve(t.Context(), without, discarded{}); !errors.Is(err, errLongHeader) {
		t.Errorf("a header without an end: %v", err)
	}
	text := "content-length:2\nContent-Type: x\n\n{}Content-Length: 0\r\n\r\n"
	frames := newFraming(strings.NewReader(text), discarded{})
	for _, want := range []string{"{}", ""} {
		if message, err := frames.Recv(); string(message) != want || err != nil {
			t.Errorf("%q, %v", message, err)
		}
	}
	if _, err := frames.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// A text that is too long is neither divided nor parsed, and its diagnostic says so.
func TestLongDocumentsAreNotRead(t *testing.T) {
	e := newEditor(t, nil)
	for name, text := range map[string]string{
		"long.pol":  strings.Repeat("read :- true.\n", policy.MaxText/14+1),
		"long.yaml": strings.Repeat(manifestOfFriends, manifest.MaxSize/len(manifestOfFriends)+1),
	} {
		found := e.open(name, text)
		if len(found) != 1 || !strings.Contains(found[0].Message, "than ") || !strings.Contains(found[0].Message, " bytes") {
			t.Errorf("%s: %d findings, the first %+v", name, len(found), found[:min(len(found), 1)])
		}
		d := newDocument(e.uri(name), text, 1, false)
		if len(d.tokens)+len(d.parts) > 0 || len(d.text) == len(text) {
			t.Errorf("%s: %d tokens, %d parts, %d bytes", name, len(d.tokens), len(d.parts), len(d.text))
		}
	}
}
