// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"shai.dev/monitor/internal/manifest"
)

// malformedLines say something else than they seem to, or less: a reader who takes what it can of them
// would leave out facts, or read others.
var malformedLines = []struct{ name, line, want string }{
	{"a text in Latin-1", "{\"conduit\":\"blacklist/de\",\"says\":\"blocked\",\"tuples\":[[\"/caf\xe9\"]]}", "it is not UTF-8"},
	{"a conduit in Latin-1", "{\"conduit\":\"caf\xe9\",\"says\":\"blocked\",\"tuples\":[[\"/1\"]]}", "it is not UTF-8"},
	{"the first half of a character", `{"conduit":"b","says":"blocked","tuples":[["\ud83d"]]}`, `\ud83d is half a character`},
	{"the second half of a character", `{"conduit":"b","says":"blocked","tuples":[["\uDE00"]]}`, `\uDE00 is half a character`},
	{"halves of two characters", `{"conduit":"b","says":"blocked","tuples":[["\ud83d\ud83d\ude00"]]}`, `\ud83d is half a character`},
	{"tuples twice", `{"conduit":"b","says":"blocked","tuples":[["/1"]],"tuples":[["/2"]]}`, `field "tuples" is given twice`},
	{"a conduit twice", `{"conduit":"b","conduit":"c","says":"blocked","tuples":[["/1"]]}`, `field "conduit" is given twice`},
	{"a field in capitals", `{"conduit":"b","says":"blocked","tuples":[["/1"]],"Tuples":[]}`, `unknown field "Tuples"`},
	{"no tuples", `{"conduit":"b","says":"blocked"}`, "tuples is missing"},
	{"null for tuples", `{"conduit":"b","says":"blocked","tuples":null}`, "tuples is missing"},
	{"null for a tuple", `{"conduit":"b","says":"blocked","tuples":[null]}`, "read tuple: want an array"},
	{"null for a conduit", `{"conduit":null,"says":"blocked","tuples":[["/1"]]}`, "must not be empty"},
	{"more brackets", `{"conduit":"b","says":"blocked","tuples":[["/1"]]}]`, "invalid character ']'"},
	{"more braces", `{"conduit":"b","says":"blocked","tuples":[["/1"]]}}`, "invalid character '}'"},
	{"a time twice", `{"conduit":"b","says":"blocked","tuples":[[{"time":"2026-01-01T00:00:00Z","time":"2027-01-01T00:00:00Z"}]]}`,
		`an object must be {"time":"<RFC 3339>"}`},
	{"a time beyond all", `{"conduit":"b","says":"blocked","tuples":[[{"time":"9999-01-01T00:00:00Z"}]]}`,
		`"9999-01-01T00:00:00Z" is not a time as in RFC 3339 between 1678 and 2262`},
	{"a time and more", `{"conduit":"b","says":"blocked","tuples":[[{"time":"2026-01-01T00:00:00Z","end":1}]]}`,
		`an object must be {"time":"<RFC 3339>"}`},
	{"an array", `["b","blocked"]`, "expected an object"},
}

// A line that does not say exactly one thing makes the file fail.
func TestMalformedLines(t *testing.T) {
	for _, test := range malformedLines {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadStatements(strings.NewReader(statement+"\n"+test.line+"\n"), "f", manifest.Declared{})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "f:2: ") {
				t.Errorf("%v; want %s", err, test.want)
			}
		})
	}
}

// Characters that need two escapes, and the one that stands for what is malformed, are read as they are.
func TestEscapesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`\ud83d\ude00`: "😀", `\ufffd`: "\ufffd", "\ufffd": "\ufffd", `\\ud83d`: `\ud83d`, `\\\uD83D\uDE00`: `\😀`, `\u00e9`: "é",
	} {
		facts, err := ReadStatements(strings.NewReader(`{"conduit":"c","says":"r","tuples":[["`+text+`"]]}`), "f",
			manifest.Declared{})
		if err != nil || len(facts) != 1 || facts[0].Arguments[0].Text() != want {
			t.Errorf("%s: %v, %v", text, facts, err)
		}
	}
}

// An answer that breaks off is not taken for a shorter one.
func TestHTTPAnswersWithoutAnEnd(t *testing.T) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	fmt.Fprintln(writer, statement)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, answer, want string }{
		{"until the connection ends", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + statement + "\n",
			"does not say where it ends"},
		{"of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n" + statement + "\n", "does not say where it ends"},
		{"a part", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Range: bytes 0-9/99\r\nContent-Length: %d\r\n\r\n%s", len(statement), statement),
			"it answers with a part"},
		{"pieces that end early", fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(statement), statement),
			"unexpected EOF"},
		{"compressed, until the connection ends", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" +
			packed.String(), "does not say where it ends"},
		{"compressed, and cut", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len()-4,
			packed.String()[:packed.Len()-4]), "unexpected EOF"},
		{"compressed", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len(), packed.String()), ""},
		{"said to be compressed", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(statement),
			statement), "gzip: invalid header"},
		{"in another encoding", "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx", `encoded as "br"`},
		{"its length", fmt.Sprintf("HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(statement), statement), ""},
		{"in pieces", fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(statement), statement), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := opened(t, at(saying(t, test.answer), ""), Login{})
			if test.want != "" {
				fails(t, source, "", test.want)
			} else if got, _ := whole(t, source); len(got) != 2 {
				t.Error(got)
			}
		})
	}
}

// saying is the URL of a server with one answer.
func saying(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(connection)); err == nil {
				_, _ = io.WriteString(connection, answer)
			}
			_ = connection.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}
