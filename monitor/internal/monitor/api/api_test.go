// SPDX-License-Identifier: BSD-2-Clause

package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/monitor/api/apitest"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/policy"
)

// serve starts a server on a real socket and a client of it.
func serve(t *testing.T, service *apitest.Service) (*api.Client, string) {
	t.Helper()
	socket, _ := apitest.Serve(t, &api.Handler{
		Service: service, Audit: apitest.Log(t),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "shai_up 1\n") }),
	}, api.Endpoints{})
	client, err := api.Connect(api.Target{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	return client, socket
}

// Every call arrives with its arguments, and its answer comes back whole.
func TestCalls(t *testing.T) {
	service := new(apitest.Service)
	client, _ := serve(t, service)
	direct := new(apitest.Service)
	ctx := context.Background()
	question := api.Question{Pipeline: "syse", Principal: "bob", Region: "de", Conduit: "/corpus/ä b.txt",
		Access: "write", Task: "worker"}
	readers := api.ReadersRequest{Pipeline: "syse", Conduit: "/corpus/ä b.txt", Access: "write", Limit: 7}
	change := api.FactChange{
		Remove: []api.Fact{apitest.Fact("friends/alice", "friend", policy.String("bob"))},
		Add:    []api.Fact{apitest.Fact("blacklist/de", "blocked", policy.Integer(17), policy.Time(apitest.Began))},
	}
	run := api.TaskRunRequest{Pipeline: "syse", Task: "a/b", ID: "0c3f-1/2", Started: apitest.Began}
	for _, test := range []struct {
		name string
		do   func(api.Calls) (any, error)
	}{
		{"apply", func(s api.Calls) (any, error) {
			return s.Apply(ctx, api.ApplyRequest{Sources: sources(), DryRun: true})
		}},
		{"status", func(s api.Calls) (any, error) { return s.Status(ctx) }},
		{"analyze", func(s api.Calls) (any, error) {
			return s.Analyze(ctx, api.AnalyzeRequest{Pipeline: "syse", Full: true}, func(api.Progress) {})
		}},
		{"export analysis", func(s api.Calls) (any, error) {
			work, size, err := s.ExportAnalysis(ctx, "syse")
			if err != nil {
				return nil, err
			}
			defer work.Close()
			text, err := io.ReadAll(work)
			return fmt.Sprintf("%d bytes: %s", size, text), err
		}},
		{"import analysis", func(s api.Calls) (any, error) {
			return s.ImportAnalysis(ctx, "syse", "b&a=s", []byte("res\x00ult"))
		}},
		{"compare", func(s api.Calls) (any, error) {
			return s.Compare(ctx, api.CompareRequest{Sources: sources(), Prune: true}, func(api.Progress) {})
		}},
		{"latest", func(s api.Calls) (any, error) { return s.LatestAnalysis(ctx, "syse") }},
		{"explain", func(s api.Calls) (any, error) { return s.Explain(ctx, question) }},
		{"readers", func(s api.Calls) (any, error) { return s.Readers(ctx, readers) }},
		{"facts", func(s api.Calls) (any, error) { return s.ChangeFacts(ctx, change) }},
		{"mode", func(s api.Calls) (any, error) { return s.SetMode(ctx, "syse", "dynamic") }},
		{"start", func(s api.Calls) (any, error) { return s.StartTask(ctx, "syse", "search-back") }},
		{"stop", func(s api.Calls) (any, error) { return s.StopTask(ctx, "syse", "search-back") }},
		{"log", func(s api.Calls) (any, error) {
			return s.TaskLog(ctx, api.TaskLogRequest{Pipeline: "syse", Task: "a/b", As: "bob", Region: "de"})
		}},
		{"wait", func(s api.Calls) (any, error) { return s.WaitTask(ctx, "syse", "indexer") }},
		{"start run", func(s api.Calls) (any, error) { return s.StartRun(ctx, run) }},
		{"await run", func(s api.Calls) (any, error) { return s.AwaitRun(ctx, run) }},
		{"stop run", func(s api.Calls) (any, error) { return s.StopRun(ctx, run) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, wantErr := test.do(direct)
			got, err := test.do(client)
			if err != nil || wantErr != nil {
				t.Fatalf("over the socket %v, directly %v", err, wantErr)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(policy.Tuple{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if diff := cmp.Diff(direct.Calls(), service.Calls()); diff != "" {
		t.Error(diff)
	}
}

func sources() []manifest.Source {
	return []manifest.Source{{Name: "regions.yaml", Text: `
apiVersion: shai.dev/v1alpha1
kind: FactSource
metadata: {name: regions}
spec:
  inline:
    - {conduit: regions, says: prefix, tuples: [["127.0.0.0/8", us]]}
`}}
}

func TestErrorsKeepTheirRemedy(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"problem", api.NotFound("start task syse/x", "see shai task list", "there is no task %q", "x"),
			`start task syse/x: there is no task "x"; see shai task list`},
		{"wrapped problem", fmt.Errorf("outer: %w", api.Conflict("set mode", "stop it first", "it runs")),
			"set mode: it runs; stop it first"},
		{"other", errors.New("disk on fire"), "GET /v1/status: disk on fire; the monitor's log says more"},
		{"deadline", context.DeadlineExceeded, "GET /v1/status: context deadline exceeded; try again"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _ := serve(t, &apitest.Service{Err: test.err})
			_, err := client.Status(context.Background())
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestManifestErrorsArriveWithTheirPlaces(t *testing.T) {
	client, _ := serve(t, new(apitest.Service))
	bad := []manifest.Source{{Name: "task.yaml",
		Text: "apiVersion: shai.dev/v1alpha1\nkind: Task\nmetadata: {name: a}\nspec: {commnad: [x]}\n"}}
	_, err := client.Apply(context.Background(), api.ApplyRequest{Sources: bad})
	var problem *api.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusUnprocessableEntity || len(problem.Errors) != 3 {
		t.Fatalf("got %#v", err)
	}
	if want := `task.yaml:4:8: Task a: spec.commnad: unknown field; did you mean "command"?`; !strings.Contains(strings.Join(problem.Errors, "\n"), want) {
		t.Errorf("%q has no %s", problem.Errors, want)
	}
}

func TestAnalysisReportsProgress(t *testing.T) {
	client, _ := serve(t, new(apitest.Service))
	var done []uint64
	_, err := client.Analyze(context.Background(), api.AnalyzeRequest{},
		func(p api.Progress) { done = append(done, p.Done) })
	if diff := cmp.Diff([]uint64{0, 1000, 2000}, done); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestAudit(t *testing.T) {
	client, _ := serve(t, new(apitest.Service))
	no := false
	query := audit.Query{Kinds: []audit.Kind{audit.Denial, audit.Binding}, Principal: "bob", Task: "worker",
		Conduit: "/corpus/",
		Since:   apitest.Began.AddDate(-10, 0, 0), Allowed: &no, Limit: 5}
	var got []audit.Record
	err := client.Query(context.Background(), query, func(r audit.Record) error { got = append(got, r); return nil })
	if err != nil || len(got) != 1 || got[0].Conduit != "/corpus/private/alice/3.txt" || got[0].MAC == "" {
		t.Errorf("%v: %+v", err, got)
	}
	v, err := client.Verify(context.Background())
	if err != nil || v.Fault != "" || v.Records != 3 {
		t.Errorf("%v: %+v", err, v)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waiting.Limit)
	defer cancel()
	count := 0
	err = client.Query(ctx, audit.Query{Follow: true}, func(audit.Record) error {
		if count++; count == 3 {
			cancel()
		}
		return nil
	})
	if err != nil || count != 3 {
		t.Errorf("followed %d records: %v", count, err)
	}
}

// A request that is not exactly a documented one is refused, and the server keeps
// running.
func TestBadRequests(t *testing.T) {
	client, socket := serve(t, new(apitest.Service))
	plain := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	for _, test := range []struct {
		name, method, path, body string
		want                     int
		says                     string
	}{
		{"unknown path", "GET", "/v1/nothing", "", 404, ""},
		{"wrong method", "DELETE", "/v1/status", "", 405, ""},
		{"not JSON", "POST", "/v1/facts", "facts", 400, "invalid character"},
		{"unknown field", "POST", "/v1/facts", `{"addd":[]}`, 400, `unknown field \"addd\"`},
		{"two values", "POST", "/v1/facts", `{} {}`, 400, "data follows"},
		{"empty body", "POST", "/v1/facts", "", 400, "EOF"},
		{"no facts", "POST", "/v1/facts", "{}", 422, "there are none"},
		{"wildcard", "POST", "/v1/facts", `{"add":[{"conduit":"a","says":"b","tuple":[null]}]}`, 422, "no wildcards"},
		{"no relation", "POST", "/v1/facts", `{"add":[{"conduit":"a","tuple":[1]}]}`, 422, "missing"},
		{"too large", "POST", "/v1/facts", `{"add":[` + strings.Repeat(" ", 2<<20) + `]}`, 413,
			"larger than 1048576 bytes"},
		{"explain nothing", "GET", "/v1/explain", "", 400, "missing"},
		{"explain a typing mistake", "GET", "/v1/explain?principle=bob&conduit=/x", "", 400, "principle"},
		{"explain another access", "GET", "/v1/explain?principal=bob&conduit=/x&access=eat", "", 400,
			"neither read nor write"},
		{"explain what is no text", "GET", "/v1/explain?principal=bob&conduit=/x%ff", "", 400, `\"/x\\xff\" is not UTF-8`},
		{"audit of what is no text", "GET", "/v1/audit?conduit=%ed%a0%80", "", 400, "not UTF-8"},
		{"readers of nothing", "GET", "/v1/readers?limit=3", "", 400, "missing"},
		{"too many readers", "GET", "/v1/readers?conduit=/x&limit=1001", "", 400, "from 1 to 1000"},
		{"readers of a typing mistake", "GET", "/v1/readers?document=/x", "", 400, "not one of"},
		{"audit kind", "GET", "/v1/audit?kind=denail", "", 400, "not a kind"},
		{"audit time", "GET", "/v1/audit?since=yesterday", "", 400, "RFC 3339"},
		{"audit limit", "GET", "/v1/audit?limit=-1", "", 400, "not a number"},
		{"audit flag", "GET", "/v1/audit?allowed=maybe", "", 400, "neither true nor false"},
		{"log of nobody", "GET", "/v1/pipelines/syse/tasks/indexer/log?as=", "", 400, "missing"},
		{"log from a region", "GET", "/v1/pipelines/syse/tasks/indexer/log?region=de", "", 400, "missing"},
		{"log of a typing mistake", "GET", "/v1/pipelines/syse/tasks/indexer/log?user=bob", "", 400, "not one of"},
		{"task action", "POST", "/v1/pipelines/syse/tasks/indexer:explode", "", 404, "not an action"},
		{"metrics", "GET", "/metrics", "", 200, "shai_up 1"},
		{"health", "GET", "/healthz", "", 200, "ok"},
		{"ready", "GET", "/readyz", "", 200, "ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := http.NewRequest(test.method, "http://monitor"+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			response, err := plain.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.want || !strings.Contains(string(body), test.says) {
				t.Errorf("%s: %s", response.Status, body)
			}
			problem := response.Header.Get("Content-Type") == "application/problem+json"
			if test.says != "" && problem != (test.want >= 400) {
				t.Errorf("content type %s", response.Header.Get("Content-Type"))
			}
		})
	}
	if _, err := client.Status(context.Background()); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func TestCrossSiteRequestIsRefused(t *testing.T) {
	handler := (&api.Handler{Service: new(apitest.Service)}).Mux()
	for site, want := range map[string]int{"cross-site": 403, "same-origin": 200} {
		request, _ := http.NewRequest("POST", "/v1/pipelines/syse/tasks/indexer:stop", nil)
		request.Header.Set("Sec-Fetch-Site", site)
		var answer recorder
		handler.ServeHTTP(&answer, request)
		if answer.status() != want {
			t.Errorf("%s: %d, want %d", site, answer.status(), want)
		}
	}
}

type recorder struct {
	bytes.Buffer
	header http.Header
	code   int
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}
func (r *recorder) WriteHeader(code int) { r.code = code }
func (r *recorder) status() int          { return max(r.code, 200) }

func TestSocket(t *testing.T) {
	t.Run("is private", func(t *testing.T) {
		_, socket := serve(t, new(apitest.Service))
		about, err := os.Stat(socket)
		if err != nil || about.Mode().Perm() != 0o600 {
			t.Errorf("mode %v: %v", about.Mode(), err)
		}
	})
	t.Run("of a living monitor is kept", func(t *testing.T) {
		_, socket := serve(t, new(apitest.Service))
		if _, err := (api.Endpoints{Socket: socket}).Open(); err == nil ||
			!strings.Contains(err.Error(), "another monitor") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of a dead monitor is replaced", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "s")
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		left.SetUnlinkOnClose(false)
		left.Close()
		apitest.Serve(t, &api.Handler{Service: new(apitest.Service)}, api.Endpoints{Socket: socket})
	})
	t.Run("never replaces a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "precious")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (api.Endpoints{Socket: file}).Open(); err == nil ||
			!strings.Contains(err.Error(), "not a socket") {
			t.Errorf("got %v", err)
		}
	})
}

func TestUnreachableMonitor(t *testing.T) {
	client, err := api.Connect(api.Target{Socket: filepath.Join(t.TempDir(), "nobody")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Status(context.Background())
	if err == nil || !strings.Contains(err.Error(),
		"nobody: connect: no such file or directory; start it with shai monitor") {
		t.Errorf("got %v", err)
	}
}

// Clients that follow the log or wait for a task do not delay the server's end.
func TestShutdownEndsFollowers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listeners, err := (api.Endpoints{Socket: socket}).Open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- api.Serve(ctx, listeners, (&api.Handler{Service: new(apitest.Service), Audit: apitest.Log(t)}).Mux())
	}()
	client, _ := api.Connect(api.Target{Socket: socket})
	err = client.Query(context.Background(), audit.Query{Follow: true}, func(r audit.Record) error {
		if r.Sequence == 3 {
			stop()
		}
		return nil
	})
	if err != nil {
		t.Errorf("the follower: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("the server: %v", err)
	}
}
