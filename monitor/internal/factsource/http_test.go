// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/manifest"
)

func at(url, caFile string) manifest.FactSourceSpec {
	return manifest.FactSourceSpec{HTTP: &manifest.FactHTTP{URL: url, CAFile: caFile, IntervalSeconds: 7}}
}

const statement = `{"conduit": "friends/alice", "says": "friend", "tuples": [["bob"], ["carol", 17]]}`

func TestHTTP(t *testing.T) {
	version, asked := 1, []string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag := fmt.Sprintf(`"v%d"`, version)
		asked = append(asked, r.Header.Get("If-None-Match"))
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		fmt.Fprintf(w, "%s\n\n", strings.ReplaceAll(statement, "17", fmt.Sprint(version)))
	}))
	defer server.Close()
	source := opened(t, at(server.URL, ""), Login{})
	got, position := whole(t, source)
	if diff := cmp.Diff([]string{`friends/alice friend("bob")`, `friends/alice friend("carol", 1)`}, got); diff != "" ||
		position != `"v1"` {
		t.Errorf("position %s\n%s", position, diff)
	}
	if update, err := source.Fetch(t.Context(), position); err != nil || !update.Empty() {
		t.Errorf("the same again: %+v, %v", update, err)
	}
	version = 2
	if update, err := source.Fetch(t.Context(), position); err != nil || update.Whole == nil ||
		update.Whole.Position != `"v2"` {
		t.Errorf("something else: %+v, %v", update, err)
	}
	if diff := cmp.Diff([]string{"", `"v1"`, `"v1"`}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestHTTPAnswersThatAreNotBelieved(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprintln(w, statement)
	}))
	defer other.Close()
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		{"an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			"it answers 500"},
		{"not modified, unasked", func(w http.ResponseWriter,
			_ *http.Request) {
			w.WriteHeader(http.StatusNotModified)
		}, "it answers 304"},
		{"not found", http.NotFound, "it answers 404"},
		{"another host", func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusFound)
		}, "it redirects to " + other.URL + "; set it as the url"},
		{"another scheme", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+r.Host+"/", http.StatusFound)
		}, "it redirects to https://"},
		{"redirects for ever", func(w http.ResponseWriter,
			r *http.Request) {
			http.Redirect(w, r, "/", http.StatusFound)
		}, "it redirects more than 5 times"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>") },
			":1: not a fact statement"},
		{"half of it", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprintln(w, statement)
		}, "unexpected EOF"},
		{"an unknown field", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, statement+"\n"+strings.Replace(statement, "says", "say", 1))
		}, `:2: not a fact statement: json: unknown field "say"`},
		{"two values on a line", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, statement+statement) },
			"more than one JSON value"},
		{"too much", func(w http.ResponseWriter, _ *http.Request) {
			empty := []byte(strings.Repeat(strings.Repeat(" ", 1023)+"\n", 1024))
			for range maxBytes / len(empty) {
				_, _ = w.Write(empty)
			}
			fmt.Fprintln(w, statement)
		}, "the answer is too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(test.answer))
			defer server.Close()
			fails(t, opened(t, at(server.URL, ""), Login{}), "", test.want)
		})
	}
	if got, _ := whole(t, opened(t, at(other.URL, ""), Login{})); len(got) != 2 {
		t.Errorf("the other host itself: %v", got)
	}
}

func TestHTTPFollowsItsOwnHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/b" {
			http.Redirect(w, r, "/b", http.StatusFound)
			return
		}
		fmt.Fprintln(w, statement)
	}))
	defer server.Close()
	if got, _ := whole(t, opened(t, at(server.URL+"/a", ""), Login{})); len(got) != 2 {
		t.Error(got)
	}
}

func TestHTTPSChecksTheServer(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprintln(w, statement)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it is told of the handshake that is to fail
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := whole(t, opened(t, at(server.URL, file), Login{})); len(got) != 2 {
		t.Error(got)
	}
	fails(t, opened(t, at(server.URL, ""), Login{}), "", "failed to verify certificate")
	if _, err := Open(at(server.URL, file+"x"), Login{}, listed(t, server.URL)); err == nil {
		t.Error("a source without its authority was opened")
	}
}

// The environment's proxy is not used: it could forge facts.
func TestHTTPUsesNoProxy(t *testing.T) {
	spec := at("http://facts.example/", "")
	source, err := newAddress(*spec.HTTP, allowing(t, spec), net.DefaultResolver)
	if err != nil {
		t.Fatal(err)
	}
	if transport, _ := source.client.Transport.(*http.Transport); transport.Proxy != nil {
		t.Error("a proxy is used")
	}
}

func TestCertificateFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	pipe, large := filepath.Join(directory, "pipe"), filepath.Join(directory, "large")
	empty := filepath.Join(directory, "empty")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{large: maxCertificatesBytes + 1, empty: 0} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
	refused := map[string]string{
		pipe:                                "it is no regular file",
		"/dev/zero":                         "it is no regular file",
		directory:                           "it is no regular file",
		large:                               "at most 4194304 are read",
		empty:                               "contains no PEM certificate",
		filepath.Join(directory, "missing"): "no such file",
	}
	if os.Geteuid() == 0 && runtime.GOOS == "linux" { // of size 0, without end, and the superuser's
		refused["/proc/kmsg"] = "contains no PEM certificate"
	}
	allowed := listed(t, "https://127.0.0.1:1")
	for name, want := range refused {
		if _, err := Open(at("https://127.0.0.1:1", name), Login{}, allowed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
