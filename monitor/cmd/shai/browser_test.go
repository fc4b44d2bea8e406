// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
	"shai.dev/monitor/internal/waiting"
)

// browsing runs shai explain --browser until the test ends, and returns what it prints as
// JSON, and how to end it.
func browsing(t *testing.T, environment map[string]string, options ...string) (*json.Decoder, func()) {
	t.Helper()
	socket, _ := apitest.Serve(t, &api.Handler{Service: new(apitest.Service), Audit: apitest.Log(t)}, api.Endpoints{})
	read, write := io.Pipe()
	p := &program{stdin: strings.NewReader(""), stdout: write, stderr: io.Discard,
		environment: func(name string) string {
			if name == "SHAI_SOCKET" {
				return socket
			}
			return environment[name]
		}}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- p.run(ctx, append([]string{"explain", "--browser", "--output", "json"}, options...))
		write.Close()
	}()
	return json.NewDecoder(read), func() {
		interrupt()
		if code := <-ended; code != exitOK {
			t.Errorf("exit %d", code)
		}
	}
}

func nextLink(t *testing.T, printed *json.Decoder) (link *url.URL, values url.Values) {
	t.Helper()
	var one opened
	if err := printed.Decode(&one); err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(one.Link)
	if err != nil {
		t.Fatal(err)
	}
	if values, err = url.ParseQuery(link.EscapedFragment()); err != nil {
		t.Fatal(err)
	}
	link.Fragment, link.RawFragment = "", ""
	return link, values
}

// The command serves the page by itself. It prints a link, and another when that was used.
func TestExplainInABrowser(t *testing.T) {
	printed, end := browsing(t, nil, "--principal", "bob", "--conduit", "/x")
	link, values := nextLink(t, printed)
	if values.Get("principal") != "bob" || values.Get("conduit") != "/x" {
		t.Errorf("the question of the link: %v", values)
	}
	browser := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { // as browsers find .localhost
			return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+link.Port())
		}}}
	defer browser.CloseIdleConnections()
	response, err := browser.Post(link.String()+"session", "application/json",
		strings.NewReader(`{"ticket":"`+values.Get("ticket")+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Token string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if _, again := nextLink(t, printed); again.Get("ticket") == values.Get("ticket") {
		t.Error("the second link is the first")
	}
	for token, want := range map[string]int{answer.Token: 200, "": 401} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link.String()+"data/pipelines", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("with token %q: %d, want %d", token, response.StatusCode, want)
		}
	}
	end()
	if _, err := browser.Get(link.String()); err == nil { //nolint:bodyclose // there is no answer
		t.Error("the page outlives the command")
	}
}

// On a desktop the browser is opened, by a file that only this user can read: the arguments of
// programs are visible to all.
func TestLinksAreNotArguments(t *testing.T) {
	directory := t.TempDir()
	said := filepath.Join(directory, "arguments")
	stand := strings.ReplaceAll("#!/bin/sh\n(echo \"$@\"; cat \"$1\") >SAID.new\nmv SAID.new SAID\n", "SAID", said)
	if err := os.WriteFile(filepath.Join(directory, "xdg-open"), []byte(stand), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", directory+":"+os.Getenv("PATH"))
	printed, end := browsing(t, map[string]string{"DISPLAY": ":1"})
	_, values := nextLink(t, printed)
	waiting.Until(t, "the browser is opened", func() bool { _, err := os.Stat(said); return err == nil })
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	file, content, _ := strings.Cut(string(text), "\n")
	if strings.Contains(file, values.Get("ticket")) || !strings.Contains(content, values.Get("ticket")) {
		t.Errorf("the browser was given %q", text)
	}
	for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, about, err)
		}
	}
	end()
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("the file outlives the command")
	}
}
