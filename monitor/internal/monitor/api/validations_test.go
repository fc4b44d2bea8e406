// SPDX-License-Identifier: BSD-2-Clause

package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
)

// ask posts a body to a mux and decodes the answer.
func ask(t testing.TB, mux http.Handler, body any) (int, api.Validation) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v1/validations", bytes.NewReader(text)))
	var result api.Validation
	if recorder.Code == http.StatusOK {
		if err := json.Unmarshal(recorder.Body.Bytes(), &result); err != nil {
			t.Fatalf("%s: %v", recorder.Body, err)
		}
	}
	return recorder.Code, result
}

const policyAlone = `{"apiVersion": "shai.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "own"},
  "spec": {"text": "policy own(owner) {\n  read :- sKeyIs(owner).\n}\n"}}`

const taskAlone = `{"apiVersion": "shai.dev/v1alpha1", "kind": "Task", "metadata": {"name": "reader"},
  "spec": {"command": ["/bin/true"], "taint": {"name": "own", "arguments": {"owner": "alice"}}}}`

func TestValidations(t *testing.T) {
	type findings []api.Finding
	for _, test := range []struct {
		name       string
		texts      []string
		alone      bool
		errors     findings
		parameters map[string][]string
		warnings   findings
	}{
		{name: "nothing", errors: findings{}, parameters: map[string][]string{}, warnings: findings{}},
		{
			name: "a policy", texts: []string{policyAlone}, errors: findings{},
			parameters: map[string][]string{"own": {"owner"}},
			warnings: findings{{Source: "0", Line: 1, Column: 76, Code: "unused", Kind: "Policy", Name: "own",
				Path:    "metadata.name",
				Message: "no task and no conduit uses the policy"}},
		},
		{name: "a policy alone", texts: []string{policyAlone}, alone: true, errors: findings{},
			parameters: map[string][]string{"own": {"owner"}}, warnings: findings{}},
		{
			name: "a mistake in a text", texts: []string{strings.Replace(policyAlone, "sKeyIs", "sKeyls", 1)},
			errors: findings{{Source: "0", Line: 2, Column: 20, TextLine: 2, TextColumn: 11, Code: "invalid",
				Lint: "unknown-predicate", Kind: "Policy", Name: "own", Path: "spec.text",
				Message: "unknown predicate `sKeyls`; did you mean sKeyIs?"}},
			parameters: map[string][]string{},
			warnings: findings{{Source: "0", Line: 1, Column: 76, Code: "unused", Kind: "Policy", Name: "own",
				Path:    "metadata.name",
				Message: "no task and no conduit uses the policy"}},
		},
		{
			name: "a reference", texts: []string{taskAlone}, parameters: map[string][]string{},
			errors: findings{{Source: "0", Line: 2, Column: 56, Code: "reference", Kind: "Task", Name: "reader",
				Path:    "spec.taint.name",
				Message: `there is no Policy "own"`}},
			warnings: findings{{Source: "0", Line: 1, Column: 74, Code: "unused", Kind: "Task", Name: "reader",
				Path:    "metadata.name",
				Message: "no pipeline has the task"}},
		},
		{name: "a reference alone", texts: []string{taskAlone}, alone: true, errors: findings{},
			parameters: map[string][]string{}, warnings: findings{}},
		{
			name: "more than a reference, alone", texts: []string{strings.Replace(taskAlone, "command", "commnad", 1)},
			alone: true,
			errors: findings{
				{Source: "0", Line: 2, Column: 11, Code: "invalid", Kind: "Task", Name: "reader", Path: "spec.command",
					Message: "the field is missing; expected a list"},
				{Source: "0", Line: 2, Column: 12, Code: "invalid", Kind: "Task", Name: "reader", Path: "spec.commnad",
					Message: `unknown field; did you mean "command"?`},
			},
			parameters: map[string][]string{}, warnings: findings{},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := api.ValidateRequest{Alone: test.alone, Sources: []manifest.Source{}}
			for i, text := range test.texts {
				request.Sources = append(request.Sources, manifest.Source{Name: fmt.Sprint(i), Text: text})
			}
			code, got := ask(t, api.ValidationMux(), request)
			want := api.Validation{Errors: test.errors, ErrorTotal: len(test.errors), Parameters: test.parameters,
				Warnings: test.warnings, Hash: got.Hash}
			if diff := cmp.Diff(want, got); diff != "" || code != http.StatusOK {
				t.Errorf("%d\n%s", code, diff)
			}
			if complete := test.name == "nothing" ||
				strings.HasPrefix(test.name, "a policy"); (got.Hash != "") != complete {
				t.Errorf("hash %q", got.Hash)
			}
		})
	}
}

// The monitor itself gives the same answer.
func TestMonitorValidates(t *testing.T) {
	request := api.ValidateRequest{Sources: []manifest.Source{{Name: "a", Text: taskAlone}}}
	_, want := ask(t, api.ValidationMux(), request)
	code, got := ask(t, (&api.Handler{}).Mux(), request)
	if diff := cmp.Diff(want, got); diff != "" || code != http.StatusOK {
		t.Errorf("%d\n%s", code, diff)
	}
}

func TestValidationsRefuseWhatIsNoRequest(t *testing.T) {
	mux := api.ValidationMux()
	for body, want := range map[string]int{
		`{"sources": 1}`:    http.StatusBadRequest,
		`{"manifests": []}`: http.StatusBadRequest,
		`{} {}`:             http.StatusBadRequest,
		``:                  http.StatusBadRequest,
		`{"sources": [{"name": "a", "text": "` + strings.Repeat("#", 33<<20) + `"}]}`: http.StatusRequestEntityTooLarge,
	} {
		recorder := httptest.NewRecorder()
		mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/v1/validations", strings.NewReader(body)))
		if recorder.Code != want {
			t.Errorf("%.40s: %d, want %d", body, recorder.Code, want)
		}
	}
}

// However many mistakes there are, the answer is bounded, comes soon, and counts them.
func TestManyMistakes(t *testing.T) {
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "---\n%s\n", strings.Replace(taskAlone, "reader", fmt.Sprintf("reader-%d", i), 1))
	}
	_, got := ask(t, api.ValidationMux(), api.ValidateRequest{Sources: []manifest.Source{{Name: "a",
		Text: text.String()}}})
	if len(got.Errors) != 1000 || got.ErrorTotal != 4000 || len(got.Warnings) != 1000 {
		t.Errorf("%d of %d errors, %d warnings", len(got.Errors), got.ErrorTotal, len(got.Warnings))
	}
}

// slowBody is a request that reports when it is read, and continues when the test says
// so.
type slowBody struct {
	begun, goOn chan struct{}
}

func (b slowBody) Read([]byte) (int, error) {
	b.begun <- struct{}{}
	<-b.goOn
	return 0, io.EOF
}

// A request that waits for its turn is not read, and is answered once there is room.
func TestValidationsAreBounded(t *testing.T) {
	mux := api.ValidationMux()
	body := slowBody{make(chan struct{}), make(chan struct{})}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/validations", body))
		})
		<-body.begun
	}
	ctx, giveUp := context.WithCancel(t.Context())
	recorder, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/validations", body)
		mux.ServeHTTP(recorder, request)
	}()
	giveUp()
	select {
	case <-answered:
	case <-body.begun:
		t.Error("a fifth request is read while four are under way")
	}
	close(body.goOn)
	group.Wait()
	if recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("the fifth was answered with %d", recorder.Code)
	}
	if code, _ := ask(t, mux, api.ValidateRequest{}); code != http.StatusOK {
		t.Errorf("%d", code)
	}
}

func TestServeValidations(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "validate.sock")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.ServeValidations(ctx, socket) }()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	var response *http.Response
	for err := error(io.EOF); err != nil; {
		if response, err = client.Get("http://shai/readyz"); err == nil {
			response.Body.Close()
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	if about, err := os.Stat(socket); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, %v", about.Mode(), err)
	}
	response, err := client.Get("http://shai/v1/status")
	if err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("something else is answered too: %v, %v", response.StatusCode, err)
	}
	response.Body.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// many is as large a cluster as is expected of the operator: 500 policies, 50
// pipelines of four tasks.
func many() api.ValidateRequest {
	var request api.ValidateRequest
	add := func(name, text string) {
		request.Sources = append(request.Sources, manifest.Source{Name: name, Text: text})
	}
	for i := range 500 {
		add(fmt.Sprintf("Policy/%d", i), strings.Replace(policyAlone, `"own"`, fmt.Sprintf(`"own-%d"`, i), 1))
		text := strings.Replace(request.Sources[i].Text, "policy own(", fmt.Sprintf("policy own_%d(", i), 1)
		request.Sources[i].Text = text
	}
	for i := range 50 {
		var tasks []string
		for k := range 4 {
			name := fmt.Sprintf("t-%d-%d", i, k)
			tasks = append(tasks, fmt.Sprintf("%q", name))
			text := strings.Replace(strings.Replace(taskAlone, "reader", name, 1), `"own"`,
				fmt.Sprintf(`"own-%d"`, i*4+k), 1)
			add("Task/"+name, strings.Replace(text, `"taint"`, `"reads": ["documents"], "taint"`, 1))
		}
		var paths []string
		for k := range 20 {
			paths = append(paths, fmt.Sprintf(`{"path": "/corpus/%d/%d/{owner}/**", "policy": {"name": "own-%d", "arguments": {"owner": "{owner}"}}}`, i, k, i*10+k%10))
		}
		add(fmt.Sprintf("Pipeline/%d", i), fmt.Sprintf(`{"apiVersion": "shai.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "p-%d"},
		  "spec": {"tasks": [%s], "conduits": [{"name": "documents", "kind": "file", "paths": [%s]}]}}`, i, strings.Join(tasks, ","), strings.Join(paths, ",")))
	}
	return request
}

func TestManyObjects(t *testing.T) {
	code, got := ask(t, api.ValidationMux(), many())
	if code != http.StatusOK || got.ErrorTotal != 0 || len(got.Parameters) != 500 || got.Hash == "" {
		t.Errorf("%d: %d errors %v, %d policies", code, got.ErrorTotal, got.Errors[:min(3, len(got.Errors))],
			len(got.Parameters))
	}
}

func BenchmarkManyObjects(b *testing.B) {
	mux, request := api.ValidationMux(), many()
	for b.Loop() {
		ask(b, mux, request)
	}
}

// FuzzValidations checks that every request gets an answer, and that the answer is JSON.
func FuzzValidations(f *testing.F) {
	for _, text := range []string{policyAlone, taskAlone, "a: &a [*a]", "{[: !!binary x", "---\n---",
		"kind: Pipeline\nspec: {conduits: [{paths: [{path: '{'}]}]}"} {
		f.Add(text, text, true)
	}
	valid, err := os.ReadFile("../../manifest/testdata/valid.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(valid), policyAlone, false)
	mux := api.ValidationMux()
	f.Fuzz(func(t *testing.T, first, second string, alone bool) {
		code, got := ask(t, mux, api.ValidateRequest{Alone: alone,
			Sources: []manifest.Source{{Name: "a", Text: first}, {Name: "b", Text: second}}})
		if code != http.StatusOK || got.Errors == nil || got.Warnings == nil || got.Parameters == nil {
			t.Errorf("%d: %+v", code, got)
		}
		for _, one := range got.Errors {
			if one.Source == "" || one.Message == "" || one.Code == "" {
				t.Errorf("an error without its place, message or code: %+v", one)
			}
		}
	})
}
