// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

func TestValidateServesUntilInterrupted(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "v.sock")
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	p := &program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		environment: func(string) string { return "" }}
	ended := make(chan int, 1)
	go func() { ended <- p.run(ctx, []string{"validate", "--socket", socket, "--log-format", "json"}) }()
	for connected := false; !connected; {
		select {
		case code := <-ended:
			t.Fatalf("exit %d", code)
		default:
		}
		if connection, err := net.Dial("unix", socket); err == nil {
			connection.Close()
			connected = true
		}
	}
	interrupt()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestValidateDoesNotTakeTheMonitorsSocket(t *testing.T) {
	if got := execute(t, []string{"validate"}, "/nowhere.sock", ""); !strings.Contains(got,
		"name a socket with --socket: the default one is the monitor's") {
		t.Error(got)
	}
}
