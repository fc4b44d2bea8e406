// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/waiting"
)

// running runs a monitor until the test ends, or until stop is called.
func running(t *testing.T, options Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, options) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

// The monitor serves the page on its socket to whom may open that, and on a loopback address
// to who holds the link, which is in a file for the monitor's user only.
func TestPage(t *testing.T) {
	options := bareOptions(t)
	options.Socket, options.Page = filepath.Join(options.State, "s.sock"), "127.0.0.1:0"
	stop := running(t, options)
	path := filepath.Join(options.State, PageLink)
	waiting.Until(t, "the link is there", func() bool { _, err := os.Stat(path); return err == nil })
	about, err := os.Stat(path)
	if err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", about.Mode(), err)
	}
	base, ticket := linkIn(t, path)
	if !strings.Contains(base, ".localhost:") {
		t.Errorf("the page's address is %s", base)
	}
	browser := loopbackClient(t)
	if got := status(t, browser, base+"/data/pipelines", ""); got != 401 {
		t.Errorf("without a token: %d", got)
	}
	response, err := browser.Post(base+"/session", "application/json", strings.NewReader(`{"ticket":"`+ticket+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Token string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if got := status(t, browser, base+"/data/pipelines", answer.Token); got != 200 {
		t.Errorf("with the token: %d", got)
	}
	if got := status(t, browser, base+"/v1/status", answer.Token); got != 404 {
		t.Errorf("the API on the page's address: %d", got)
	}
	if _, next := linkIn(t, path); next == ticket {
		t.Error("the link is not renewed")
	}

	onSocket := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", options.Socket)
		}}}
	for address, want := range map[string]int{
		"http://localhost/page/": 200, "http://localhost/page/data/pipelines": 200,
		"http://evil.example/page/data/pipelines": 421,
	} {
		if got := status(t, onSocket, address, ""); got != want {
			t.Errorf("%s on the socket: %d, want %d", address, got, want)
		}
	}
	onSocket.CloseIdleConnections()
	stop()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link of a monitor that has ended: %v", err)
	}
}

// A monitor whose page other machines could reach does not start.
func TestPageForOtherMachines(t *testing.T) {
	options := bareOptions(t)
	options.Socket, options.Page = filepath.Join(options.State, "s.sock"), "0.0.0.0:0"
	if err := Run(t.Context(), options); err == nil || !strings.Contains(err.Error(), "other machines could reach it") {
		t.Errorf("got %v", err)
	}
}

// When the API fails by itself, the monitor ends, and does not wait for the page.
func TestPageEndsWithTheAPI(t *testing.T) {
	m, _ := bareMonitor(t)
	m.options.Page = "127.0.0.1:0"
	end, err := m.servePage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	waiting.Until(t, "the page has ended", func() bool { return len(ended) == 1 })
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// loopbackClient finds names that end with .localhost at 127.0.0.1, as browsers do.
func loopbackClient(t *testing.T) *http.Client {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		}}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func linkIn(t *testing.T, path string) (base, ticket string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	values, err := url.ParseQuery(link.EscapedFragment())
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + link.Host, values.Get("ticket")
}

func status(t *testing.T, client *http.Client, address, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
