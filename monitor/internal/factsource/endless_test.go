// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/waiting"
)

// serveEndlessly answers every command as a store would answer XREAD whose stream has
// always one more entry.
func serveEndlessly(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for entry := 1; ; entry++ {
		var words, size int
		if _, err := fmt.Fscanf(reader, "*%d\r\n", &words); err != nil {
			return
		}
		for range words {
			if _, err := fmt.Fscanf(reader, "$%d\r\n", &size); err != nil {
				return
			}
			if _, err := reader.Discard(size + len("\r\n")); err != nil {
				return
			}
		}
		answer := "*1\r\n*2\r\n$7\r\nchanges\r\n*1\r\n*2\r\n"
		fields := []string{fmt.Sprintf("%d-0", entry), "op", "replace", "conduit", "users", "says", "user",
			"tuple", "[1]"}
		for i, field := range fields {
			if i == 1 {
				answer += fmt.Sprintf("*%d\r\n", len(fields)-1)
			}
			answer += fmt.Sprintf("$%d\r\n%s\r\n", len(field), field)
		}
		if _, err := connection.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// TestEndlessStream: a bundle waits for the first fetch, which has to end.
func TestEndlessStream(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "store.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serveEndlessly(connection)
		}
	}()
	source := opened(t, streamOf(socket), Login{})
	endless, isStream := source.(*stream)
	if !isStream || endless.replayTime != fetchTime {
		t.Fatalf("%#v", source)
	}
	endless.replayTime = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), waiting.Limit)
	defer cancel()
	if _, err := source.Fetch(ctx, ""); err == nil || !strings.Contains(err.Error(), "within 100ms") {
		t.Errorf("fetched: %v", err)
	}
}

// TestSilentStream: the time for a first fetch is not the time for each of its replies.
func TestSilentStream(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "store.sock")
	listener, err := net.Listen("unix", socket) // accepts connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, login := range []Login{{}, {Command: "AUTH", User: "monitor", Password: "secret"}} {
		source := opened(t, streamOf(socket), login)
		source.(*stream).replayTime = 100 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), waiting.Limit)
		if _, err := source.Fetch(ctx, ""); err == nil || ctx.Err() != nil ||
			!strings.Contains(err.Error(), "within 100ms") {
			t.Errorf("fetched: %v, %v", err, ctx.Err())
		}
		cancel()
	}
}
