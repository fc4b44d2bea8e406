// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
)

// canned is a connection whose peer has already said all that it will say, and that gives it in pieces.
type canned struct {
	net.Conn
	said  io.Reader
	piece int
}

func (c *canned) Read(into []byte) (int, error) { return c.said.Read(into[:min(len(into), c.piece)]) }

func (*canned) Write(data []byte) (int, error)   { return len(data), nil }
func (*canned) SetReadDeadline(time.Time) error  { return nil }
func (*canned) SetWriteDeadline(time.Time) error { return nil }
func (*canned) Close() error                     { return nil }

// received reads all replies.
func received(connection net.Conn) (all []any, err error) {
	client := redis.NewConn(connection, 0, 0)
	for {
		reply, err := client.Receive()
		if client.Err() != nil {
			return all, err
		}
		if err != nil {
			reply = err
		}
		all = append(all, reply)
	}
}

func limitedTo(said []byte, piece, bytesLeft, elements int) *replies {
	return &replies{Conn: &canned{said: bytes.NewReader(said), piece: piece}, left: bytesLeft, elements: elements}
}

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hostileReplies are those of the table in docs/guide.md, by their description there.
var hostileReplies = map[string]string{
	"an array of 2^62 elements":            "*4611686018427387904\r\n",
	"an array of 2^40 elements":            "*1099511627776\r\n",
	"arrays that are too long together":    "*2\r\n*8388607\r\n",
	"a length of more than 64 bits":        "*99999999999999999999\r\n",
	"a text of a tebibyte":                 "$1099511627776\r\n",
	"a text of 2^63-1 bytes":               "$9223372036854775807\r\n",
	"a negative length":                    "$-2\r\n",
	"a length that is no number":           "*1x\r\n",
	"arrays in arrays without end":         strings.Repeat("*1\r\n", 1_000_000),
	"a line that does not end":             "+" + strings.Repeat("x", 1_000_000),
	"a text that is longer than announced": "$1\r\nabc\r\n",
	"a line without CR":                    "+OK\n",
	"a map, as in RESP3":                   "%1\r\n+a\r\n+b\r\n",
	"an empty line":                        "\r\n",
}

// answering returns the socket of a server that sends one reply to each connection.
func answering(t *testing.T, reply string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				if _, err := connection.Read(make([]byte, 1024)); err != nil {
					return
				}
				if _, err := io.WriteString(connection, reply); err != nil {
					return // the client has read enough of it
				}
				_, _ = io.Copy(io.Discard, connection) // until the client closes it
			}()
		}
	}()
	return socket
}

var hostileRow = regexp.MustCompile("(?m)^\\| ([^|`]+) \\| `(.+)` \\|$")

func documentedReplies(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n| a store's reply | error |\n")
	section, _, _ = strings.Cut(section, "\n\n")
	rows := map[string]string{}
	for _, row := range hostileRow.FindAllStringSubmatch(section, -1) {
		rows[row[1]] = row[2]
	}
	return rows
}

// TestHostileReplies: whatever a store answers, a fetch ends in the error that the manual says, and
// takes little memory.
func TestHostileReplies(t *testing.T) {
	rows := documentedReplies(t)
	for name, reply := range hostileReplies {
		t.Run(name, func(t *testing.T) {
			socket := answering(t, reply)
			for _, source := range []struct {
				spec  manifest.FactSourceSpec
				login Login
			}{
				{keysOf(socket, manifest.FactKeys{Pattern: "a", Conduit: "b", Says: "c"}), Login{}},
				{streamOf(socket), Login{}},
				{streamOf(socket), Login{Command: "AUTH", User: "monitor", Password: "secret"}},
			} {
				var err error
				opened := opened(t, source.spec, source.login)
				size := allocated(func() { _, err = opened.Fetch(t.Context(), "") })
				if !errors.Is(err, ErrReply) || rows[name] == "" || !strings.Contains(err.Error(), rows[name]) {
					t.Errorf("docs/guide.md says %q, the error is\n%.300v", rows[name], err)
				}
				if size > 4<<20 {
					t.Errorf("it takes %d bytes of memory", size)
				}
			}
		})
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/guide.md has a hostile reply %q that no test has", name)
	}
}

// honestReplies are what Redis 7 answers to the commands that are used, in their order.
var honestReplies = []string{
	"+OK\r\n", "-NOAUTH Authentication required.\r\n", // AUTH
	"*2\r\n$1\r\n0\r\n*2\r\n$9\r\nfriends:a\r\n$9\r\nfriends:b\r\n", "*2\r\n$2\r\n17\r\n*0\r\n", // SCAN
	"+set\r\n", "+none\r\n", // TYPE
	"*2\r\n$3\r\nbob\r\n$0\r\n\r\n", "*0\r\n", // SMEMBERS, LRANGE, HKEYS
	"$8\r\n\r\nyes\r\n*\r\n", "$-1\r\n", // GET
	"*1\r\n*2\r\n$5\r\nfacts\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*8\r\n$2\r\nop\r\n$3\r\nadd\r\n$7\r\nconduit\r\n$1\r\na\r\n" +
		"$4\r\nsays\r\n$1\r\nr\r\n$5\r\ntuple\r\n$5\r\n[\"1\"]\r\n", "*-1\r\n", // XREAD
	"*6\r\n$6\r\nlength\r\n:1\r\n$11\r\nfirst-entry\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n$10\r\nlast-entry\r\n*-1\r\n", // XINFO
	"*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n",                                                                         // XRANGE
}

// TestHonestReplies: the client gets every reply as if nothing read along, in whatever pieces it comes.
func TestHonestReplies(t *testing.T) {
	text := []byte(strings.Join(honestReplies, ""))
	want, _ := received(&canned{said: bytes.NewReader(text), piece: len(text)})
	if len(want) != len(honestReplies) {
		t.Fatalf("%d replies", len(want))
	}
	for piece := 1; piece <= 64; piece++ {
		got, err := received(limitedTo(text, piece, maxBytes, maxElements))
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Fatalf("in pieces of %d: %v\n%s", piece, err, diff)
		}
	}
}

// TestReplyLimits: what is exactly as large as a limit passes, and one more does not.
func TestReplyLimits(t *testing.T) {
	deep := func(levels int) string { return strings.Repeat("*1\r\n", levels) + ":1\r\n" }
	line := func(size int) string { return "+" + strings.Repeat("x", size-3) + "\r\n" }
	for _, test := range []struct{ name, at, beyond string }{
		{"bytes announced", "$91\r\n" + strings.Repeat("x", 91) + "\r\n", "$97\r\n"},
		{"bytes sent", strings.Repeat("+abc\r\n", 16) + ":1\r\n", strings.Repeat("+abc\r\n", 17)},
		{"elements", "*3\r\n" + strings.Repeat(":1\r\n", 3), "*4\r\n" + strings.Repeat(":1\r\n", 4)},
		{"elements of all arrays", "*2\r\n*1\r\n:1\r\n:1\r\n", "*2\r\n*2\r\n:1\r\n:1\r\n:1\r\n"},
		{"levels", deep(maxNesting), deep(maxNesting + 1)},
		{"a line", line(maxReplyLine), line(maxReplyLine + 1)},
	} {
		left, elements := 100, 3
		switch test.name {
		case "a line":
			left = maxBytes
		case "levels":
			elements = maxElements
		}
		for piece := 1; piece < 7; piece++ {
			if _, err := received(limitedTo([]byte(test.at), piece, left, elements)); !errors.Is(err, io.EOF) {
				t.Errorf("%s, at the limit: %v", test.name, err)
			}
			if _, err := received(limitedTo([]byte(test.beyond), piece, left, elements)); !errors.Is(err, ErrReply) {
				t.Errorf("%s, beyond the limit: %v", test.name, err)
			}
		}
	}
}

// TestLargeKeys: a value that no fact may have is refused, and values that are too large together are before they come.
func TestLargeKeys(t *testing.T) {
	store, socket := startStore(t)
	source := opened(t, keysOf(socket, manifest.FactKeys{Pattern: "friends:{user}", Conduit: "friends/{user}",
		Says: "friend"}), Login{})
	do(t, store, "SETRANGE", "friends:alice", maxBytes/2, "x")
	fails(t, source, "", fmt.Sprintf("a value has %d bytes; at most 4096 are allowed", maxBytes/2+1))
	do(t, store, "SETRANGE", "friends:bob", maxBytes/2, "x")
	fails(t, source, "", fmt.Sprintf("at most %d bytes are read at once in all; divide the facts", maxBytes))
}

// TestLargeStreams: a stream may be larger than the limit, its facts may not, and neither may what one
// command returns.
func TestLargeStreams(t *testing.T) {
	store, socket := startStore(t)
	source := opened(t, streamOf(socket), Login{})
	source.(*stream).replayTime = 10 * fetchTime // on a busy machine, too
	const pages = 2
	write := func(op string, number, all int) {
		for i := range number {
			text := strings.Repeat("x", all/number/15+1)
			tuple := fmt.Sprintf(`["%d"%s]`, i, strings.Repeat(`,"`+text+`"`, 15))
			err := store.Send("XADD", "facts", "*", "op", op, "conduit", "a", "says", "r", "tuple", tuple)
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := store.Do(""); err != nil {
			t.Fatal(err)
		}
	}
	write("replace", pages*entriesAtOnce, maxBytes)
	if got, position := whole(t, source); len(got) != 1 {
		t.Errorf("%d facts at %s", len(got), position)
	}
	do(t, store, "DEL", "facts")
	write("add", pages*entriesAtOnce, maxBytes)
	fails(t, source, "", fmt.Sprintf("more than %d bytes of facts; divide them among several sources", maxBytes))
	do(t, store, "DEL", "facts")
	position := entry(t, store, "add", "a", `["small"]`)
	write("replace", entriesAtOnce, maxBytes)
	fails(t, source, position, ErrReply.Error())
}

// FuzzReplies: what a store says, in whatever pieces, ends in an error and takes little memory; what is not
// refused, the client reads as if nothing read along.
func FuzzReplies(f *testing.F) {
	for _, reply := range hostileReplies {
		f.Add([]byte(reply[:min(len(reply), 5000)]), uint16(7))
	}
	for _, reply := range honestReplies {
		f.Add([]byte(reply), uint16(1))
	}
	f.Fuzz(func(t *testing.T, said []byte, piece uint16) {
		var got []any
		var err error
		size := allocated(func() { got, err = received(limitedTo(said, int(piece)+1, 1<<16, 1<<10)) })
		if err == nil || size > 8<<20 {
			t.Fatalf("%v, %d bytes of memory", err, size)
		}
		if errors.Is(err, ErrReply) {
			return
		}
		want, plain := received(&canned{said: bytes.NewReader(said), piece: len(said) + 1})
		if diff := cmp.Diff(want, got); diff != "" || err.Error() != plain.Error() {
			t.Fatalf("%v, want %v\n%s", err, plain, diff)
		}
	})
}
