// SPDX-License-Identifier: BSD-2-Clause

package languageserver

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"

	"shai.dev/monitor/policy"
)

// editor is a client with one directory of files.
type editor struct {
	*testing.T
	client    *jrpc2.Client
	directory string
	published chan publishParams
	ended     chan error
}

func newEditor(t *testing.T, files map[string]string) *editor {
	t.Helper()
	e := &editor{T: t, directory: t.TempDir(), published: make(chan publishParams, 100), ended: make(chan error, 1)}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(e.directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fromServer, toClient := io.Pipe()
	fromClient, toServer := io.Pipe()
	go func() { e.ended <- Serve(context.Background(), fromClient, toClient) }()
	e.client = jrpc2.NewClient(channel.LSP(fromServer, toServer), &jrpc2.ClientOptions{
		OnNotify: func(request *jrpc2.Request) {
			var params publishParams
			if err := request.UnmarshalParams(&params); err == nil {
				e.published <- params
			}
		}})
	t.Cleanup(func() { _ = e.client.Close() })
	e.call("initialize", map[string]any{"capabilities": map[string]any{}}, nil)
	return e
}

func (e *editor) uri(name string) string { return uriOf(filepath.Join(e.directory, name)) }

func (e *editor) call(method string, params, into any) {
	e.Helper()
	if err := e.try(method, params, into); err != nil {
		e.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) try(method string, params, into any) error {
	response, err := e.client.Call(e.Context(), method, params)
	if err != nil || into == nil {
		return err
	}
	return response.UnmarshalResult(into)
}

// open shows a text and returns what is found in it.
func (e *editor) open(name, text string) []diagnostic {
	e.Helper()
	var params openParams
	params.TextDocument.URI, params.TextDocument.Text, params.TextDocument.Version = e.uri(name), text, 1
	if err := e.client.Notify(e.Context(), "textDocument/didOpen", params); err != nil {
		e.Fatal(err)
	}
	for published := range e.published {
		if published.URI == e.uri(name) {
			return published.Diagnostics
		}
	}
	return nil
}

// at is the place before "|" in a text, and the text without it.
func at(t *testing.T, text string) (string, position) {
	t.Helper()
	before, after, found := strings.Cut(text, "|")
	if !found {
		t.Fatalf("no | in %q", text)
	}
	line := strings.LastIndex(before, "\n") + 1
	return before + after, position{strings.Count(before, "\n"), units(before[line:])}
}

func (e *editor) place(name string, where position) placeParams {
	return placeParams{identifier{e.uri(name)}, where}
}

const friends = `policy friends(owner) {
  read :- sKeyIs(owner).
  read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
}
`

func TestDiagnosticsAreThoseOfLint(t *testing.T) {
	e := newEditor(t, map[string]string{"base.pol": friends})
	good := `policy good(owner) includes friends(owner) { update :- sKeyIs(owner). }`
	if found := e.open("good.pol", good); len(found) > 0 {
		t.Errorf("a policy that includes one of another file: %+v", found)
	}
	found := e.open("bad.pol", "read :- \"é😀\" says friend(K), skeyIs(K).\n")
	if len(found) != 1 || found[0].Code != string(policy.CodeUnknownPredicate) || found[0].Severity != 1 ||
		!strings.Contains(found[0].Message, "sKeyIs") {
		t.Fatalf("%+v", found)
	}
	// The place counts UTF-16 units: é is one, 😀 are two.
	if got, want := found[0].Range.Start, (position{0, units("read :- \"é😀\" says friend(K), ")}); got != want {
		t.Errorf("at %+v, want %+v", got, want)
	}
	if found := e.open("once.pol", `read :- sKeyIs(K), "f" says friend(Q).`); len(found) == 0 {
		t.Error("a variable that is used once is not reported")
	}
}

func TestHover(t *testing.T) {
	e := newEditor(t, map[string]string{"base.pol": friends})
	for text, want := range map[string]string{
		`read :- sK|eyIs("a").`:                                            "authenticated",
		`update :- cKind|Is(file).`:                                        "`descriptor`",
		`policy a(end: time) { read :- timeIs(T), lt(T, en|d). }`:          "of type time",
		`read :- sKeyIs(K|), "f" says friend(K).`:                          "used 2 times",
		`rea|d :- true.`:                                                   "who may read",
		`policy a(owner) includes fri|ends(owner) { }`:                     `F says friend(K)`,
		`policy a(owner) includes library/pri|vate(owner) { }`:             "standard library",
		`read :- sKeyIs(K), "f" says fri|end(K).`:                          "no FactSource",
		`update :- each in this willsay t(X) { eq(X, 1) }, cTyp|eIs("t").`: "declared shape",
	} {
		text, where := at(t, text)
		e.open("h.pol", text)
		var got *hover
		e.call("textDocument/hover", e.place("h.pol", where), &got)
		if got == nil || !strings.Contains(got.Contents.Value, want) {
			t.Errorf("%s: %+v, want %q", text, got, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	e := newEditor(t, map[string]string{"base.pol": friends, "facts.yaml": `apiVersion: shai.dev/v1alpha1
kind: FactSource
metadata: {name: people}
spec:
  relations: [{name: colleague, arguments: [{name: who, type: string}]}]
  inline: [{conduit: team, says: colleague, tuples: [[bob]]}]
`})
	for text, want := range map[string][]string{
		"|":                                          {"policy", "read"},
		"policy a {\n  |":                            {"read", "update", "declassify"},
		"policy a(owner) {\n  read :- sK|":           {"sKeyIs", "owner", "each"},
		`read :- sKeyIs(Kay), "f" says |`:            {"friend", "colleague"},
		`read :- sKeyIs(Kay), neq(|`:                 {"Kay", "this"},
		"update :- cKindIs(|":                        {"file", "descriptor"},
		"policy a(owner) includes |":                 {"friends", "library/private"},
		"policy a(owner) includes friends(owner), |": {"library/friends"},
		"read :- true.\n|":                           {"read"},
	} {
		text, where := at(t, text)
		e.open("c.pol", text)
		var got []completionItem
		e.call("textDocument/completion", e.place("c.pol", where), &got)
		var labels []string
		for _, item := range got {
			labels = append(labels, item.Label)
		}
		for _, label := range want {
			if !slices.Contains(labels, label) {
				t.Errorf("%q: no %s in %v", text, label, labels)
			}
		}
	}
}

func TestDefinitionsAcrossFiles(t *testing.T) {
	e := newEditor(t, map[string]string{"base.pol": friends})
	text, where := at(t, `policy a(owner) includes frie|nds(owner) { }`)
	e.open("d.pol", text)
	var got []location
	e.call("textDocument/definition", e.place("d.pol", where), &got)
	if len(got) != 1 || got[0].URI != e.uri("base.pol") || got[0].Range.Start != (position{0, 7}) {
		t.Errorf("%+v", got)
	}
	e.call("textDocument/references", e.place("d.pol", where), &got)
	if len(got) != 2 {
		t.Errorf("references: %+v", got)
	}
	text, where = at(t, "policy a(owner) {\n read :- sKeyIs(K), eq(K, own|er).\n}")
	e.open("e.pol", text)
	e.call("textDocument/definition", e.place("e.pol", where), &got)
	if len(got) != 1 || got[0].Range.Start != (position{0, 9}) {
		t.Errorf("a parameter: %+v", got)
	}
}

// applied returns a text with edits.
func applied(t *testing.T, text string, edits []textEdit) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	slices.SortFunc(edits, func(a, b textEdit) int {
		if a.Range.Start.Line != b.Range.Start.Line {
			return b.Range.Start.Line - a.Range.Start.Line
		}
		return b.Range.Start.Character - a.Range.Start.Character
	})
	for _, edit := range edits {
		if edit.Range.Start.Line != edit.Range.End.Line {
			return edit.NewText // the whole text
		}
		line := lines[edit.Range.Start.Line] // of ASCII
		from, to := edit.Range.Start.Character, edit.Range.End.Character
		lines[edit.Range.Start.Line] = line[:from] + edit.NewText + line[to:]
	}
	return strings.Join(lines, "\n")
}

// Renaming changes names and nothing else: the policy's identity stays.
func TestRenameKeepsTheMeaning(t *testing.T) {
	e := newEditor(t, nil)
	for text, name := range map[string]string{
		`policy p(owner) { read :- sKeyIs(K|), "f" says friend(K, L), eq(K, L). read :- sKeyIs(K), neq(K, "x"). }`: "Reader",
		`policy p(own|er) { read :- sKeyIs(owner). read :- "owner" says owner(owner). }`:                           "holder",
		`policy p(owner, end: time) { read :- sKeyIs(owner), timeIs(T), lt(T, en|d). }`:                            "until-when",
		`policy p(owner) { read :- each in "l" says b(X, Y) { neq(X|, Y) }. read :- sKeyIs(owner). }`:              "Z",
		`policy p { read :- sKeyIs(_Q|), "f" says friend(_Q). }`:                                                   "_R",
	} {
		text, where := at(t, text)
		e.open("r.pol", text)
		var got workspaceEdit
		e.call("textDocument/rename", renameParams{identifier{e.uri("r.pol")}, where, name}, &got)
		renamed := applied(t, text, got.Changes[e.uri("r.pol")])
		if renamed == text || identity(t, renamed) != identity(t, text) {
			t.Errorf("%s\nbecame %s", text, renamed)
		}
	}
}

func identity(t *testing.T, text string) policy.ID {
	t.Helper()
	template, err := policy.CompileText("r.pol", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	arguments := map[string]string{}
	for _, parameter := range template.Parameters() {
		arguments[parameter] = "alice"
		if strings.Contains(text, parameter+": time") {
			arguments[parameter] = "2027-01-01T00:00:00Z"
		}
	}
	bound, err := template.Bind(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return bound.ID()
}

func TestRenamesThatWouldChangeTheMeaningAreRefused(t *testing.T) {
	e := newEditor(t, map[string]string{"base.pol": friends})
	for text, name := range map[string]string{
		`read :- sKeyIs(K|), eq(K, L), "x" says y(L).`:                          "L",
		`read :- sKeyIs(K|), "x" says y(K).`:                                    "kay",
		`policy p(own|er, other) { read :- sKeyIs(owner), neq(owner, other). }`: "other",
		`policy p(own|er) { read :- sKeyIs(owner). }`:                           "this",
		`read :- sKey|Is("a").`:                                                 "sIpIs",
		`read :- sKeyIs(K), "x" says fri|end(K).`:                               "foe",
		`policy p| { read :- true. }`:                                           "friends",
		`read :- sKeyIs(K|), "z" says y(K).`:                                    "_K",
		`read :- sKeyIs(K), "x" says y(K, _Q|).`:                                "Q",
		`read :- sKeyIs(_Q|), "x" says y(_Q).`:                                  "Q",
		`read :- sKeyIs(K|), "x" says y(K), unheard(K).`:                        "L",
		`read :- sKeyIs(K|), "x" says y(K), .`:                                  "L",
	} {
		text, where := at(t, text)
		e.open("n.pol", text)
		if err := e.try("textDocument/rename", renameParams{identifier{e.uri("n.pol")}, where, name}, nil); err == nil {
			t.Errorf("%s: %s is accepted", text, name)
		}
	}
}

// A policy is renamed in every file that includes it.
func TestRenameOfAPolicyReachesOtherFiles(t *testing.T) {
	e := newEditor(t, map[string]string{"base.pol": friends, "other.pol": "policy b(o) includes friends(o) { }\n"})
	text, where := at(t, `policy a(owner) includes frie|nds(owner) { }`)
	e.open("a.pol", text)
	var got workspaceEdit
	e.call("textDocument/rename", renameParams{identifier{e.uri("a.pol")}, where, "close-friends"}, &got)
	if len(got.Changes) != 3 || len(got.Changes[e.uri("other.pol")]) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestFormattingIsThatOfTheCommand(t *testing.T) {
	e := newEditor(t, nil)
	text := "policy a{read:-sKeyIs(\"a\").\n\n\n}"
	e.open("f.pol", text)
	var got []textEdit
	e.call("textDocument/formatting", documentParams{identifier{e.uri("f.pol")}}, &got)
	file, err := policy.Parse("f.pol", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if formatted := applied(t, text, got); formatted != string(file.Format()) {
		t.Errorf("%q", formatted)
	}
	e.open("g.pol", "read :- ")
	e.call("textDocument/formatting", documentParams{identifier{e.uri("g.pol")}}, &got)
	if len(got) != 0 {
		t.Errorf("a text with mistakes: %+v", got)
	}
}

func TestTheServerEndsInOrder(t *testing.T) {
	e := newEditor(t, nil)
	var nothing json.RawMessage
	e.call("shutdown", nil, &nothing)
	if err := e.client.Notify(t.Context(), "exit", nil); err != nil {
		t.Fatal(err)
	}
	if err := <-e.ended; err != nil {
		t.Error(err)
	}
	other := newEditor(t, nil)
	_ = other.client.Close()
	if err := <-other.ended; err == nil {
		t.Error("an editor that vanishes is no error")
	}
}

// shutdown and exit have no parameters, which editors write in several ways.
func TestTheServerEndsWhateverParametersAreSent(t *testing.T) {
	for _, params := range []string{``, `,"params":null`, `,"params":{}`, `,"params":[]`} {
		input, editor := io.Pipe()
		output, answers := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- Serve(t.Context(), input, answers) }()
		messages := channel.LSP(output, editor)
		if err := messages.Send([]byte(`{"jsonrpc":"2.0","id":1,"method":"shutdown"` + params + `}`)); err != nil {
			t.Fatal(err)
		}
		answer, err := messages.Recv()
		if err != nil || string(answer) != `{"jsonrpc":"2.0","id":1,"result":null}` {
			t.Errorf("%s: %s, %v", params, answer, err)
		}
		if err := messages.Send([]byte(`{"jsonrpc":"2.0","method":"exit"` + params + `}`)); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", params, err)
		}
		_ = editor.Close()
	}
}

// The server ends with exit, and with its context, although the input stays open.
func TestTheServerEndsThoughInputStaysOpen(t *testing.T) {
	input, editor := io.Pipe()
	t.Cleanup(func() { _ = editor.Close() })
	output, answers := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(context.Background(), input, answers) }()
	messages := channel.LSP(output, editor)
	if err := messages.Send([]byte(`{"jsonrpc":"2.0","id":1,"method":"shutdown"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := messages.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := messages.Send([]byte(`{"jsonrpc":"2.0","method":"exit"}`)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	unread, open := io.Pipe()
	t.Cleanup(func() { _ = open.Close() })
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { ended <- Serve(ctx, unread, discarded{}) }()
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type discarded struct{}

func (discarded) Write(text []byte) (int, error) { return len(text), nil }

func (discarded) Close() error { return nil }

// No text, however broken, ends the server.
func FuzzTextsWhileTheyAreTyped(f *testing.F) {
	for _, seed := range []string{friends, "policy", "policy a(", "read :- each in", "}", "read :- \"",
		"policy a includes ,"} {
		f.Add(seed, 1, 3)
	}
	f.Fuzz(func(t *testing.T, text string, line, character int) {
		s := &Server{open: map[string]*document{}}
		d := newDocument("file:///nowhere/x.pol", text, 1, false)
		s.open[d.uri] = d
		where := placeParams{identifier{d.uri}, position{max(line, 0), max(character, 0)}}
		for range 2 {
			if _, err := s.hover(t.Context(), where); err != nil {
				t.Fatal(err)
			}
			if _, err := s.completion(t.Context(), where); err != nil {
				t.Fatal(err)
			}
			if _, err := s.definition(t.Context(), where); err != nil {
				t.Fatal(err)
			}
			_, _ = s.rename(t.Context(), renameParams{where.TextDocument, where.Position, "X"})
			s.findings(d)
			where.Position = position{strings.Count(text, "\n"), 0}
		}
	})
}
