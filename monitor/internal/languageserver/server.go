// SPDX-License-Identifier: BSD-2-Clause

// Package languageserver speaks the Language Server Protocol about policies, in files of their own
// and in manifests: an editor shows mistakes while one types, says what a predicate means, completes,
// finds, renames and formats. It reads files beside those that are open, and writes none.
package languageserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/handler"

	"shai.dev/monitor/internal/edition"
	"shai.dev/monitor/internal/plainfile"
	"shai.dev/monitor/policy"
)

// Server serves one editor.
type Server struct {
	rpc  *jrpc2.Server
	open map[string]*document // by URI
	utf8 bool                 // the editor counts bytes
	done atomic.Bool          // the editor has asked to shut down
	left chan struct{}        // closed by exit
}

// Serve answers an editor until it says exit, closes its end, or ctx ends. It returns an error
// if the editor leaves without having asked to shut down.
func Serve(ctx context.Context, in io.Reader, out io.WriteCloser) error {
	s := &Server{open: map[string]*document{}, left: make(chan struct{})}
	// Requests are answered one after the other: each sees the text that the editor had.
	s.rpc = jrpc2.NewServer(s.methods(), &jrpc2.ServerOptions{AllowPush: true, Concurrency: 1})
	s.rpc.Start(newFraming(in, out))
	ended := make(chan error, 1)
	go func() { ended <- s.rpc.Wait() }() // not before input ends, which an editor may leave open
	var err error
	select {
	case <-ctx.Done():
		return nil
	case <-s.left:
	case err = <-ended:
	}
	switch {
	case err != nil:
		return fmt.Errorf("language server: %w", err)
	case !s.done.Load():
		return errors.New("language server: the editor has left without a request to shut down")
	}
	return nil
}

func (s *Server) methods() handler.Map {
	return handler.Map{
		"initialize":                 handler.New(s.initialize),
		"initialized":                func(context.Context, *jrpc2.Request) (any, error) { return nil, nil },
		"shutdown":                   s.shutdown,
		"exit":                       s.exit,
		"textDocument/didOpen":       handler.New(s.didOpen),
		"textDocument/didChange":     handler.New(s.didChange),
		"textDocument/didSave":       handler.New(s.didSave),
		"textDocument/didClose":      handler.New(s.didClose),
		"textDocument/hover":         handler.New(s.hover),
		"textDocument/completion":    handler.New(s.completion),
		"textDocument/definition":    handler.New(s.definition),
		"textDocument/references":    handler.New(s.references),
		"textDocument/prepareRename": handler.New(s.prepareRename),
		"textDocument/rename":        handler.New(s.rename),
		"textDocument/formatting":    handler.New(s.formatting),
		"$/cancelRequest":            handler.New(func(context.Context, map[string]any) error { return nil }),
		"$/setTrace":                 handler.New(func(context.Context, map[string]any) error { return nil }),
		"workspace/didChangeWatchedFiles": handler.New(func(ctx context.Context, _ map[string]any) error {
			return s.publishAll(ctx)
		}),
	}
}

// shutdown and exit have no parameters. Those that an editor sends all the same are not looked at: it would
// otherwise be refused to leave.
func (s *Server) shutdown(context.Context, *jrpc2.Request) (any, error) {
	s.done.Store(true)
	return nil, nil
}

// exit ends the server. The editor may send it twice.
func (s *Server) exit(context.Context, *jrpc2.Request) (any, error) {
	select {
	case <-s.left:
	default:
		close(s.left)
	}
	return nil, nil
}

func (s *Server) initialize(_ context.Context, params initializeParams) (initializeResult, error) {
	encoding := "utf-16"
	if slices.Contains(params.Capabilities.General.PositionEncodings, "utf-8") {
		encoding, s.utf8 = "utf-8", true
	}
	return initializeResult{
		ServerInfo: serverInfo{Name: "shai policy lsp", Version: edition.Version()},
		Capabilities: serverCapabilities{
			PositionEncoding:   encoding,
			TextDocumentSync:   syncOptions{OpenClose: true, Change: 1, Save: true},
			HoverProvider:      true,
			CompletionProvider: completionOptions{TriggerCharacters: []string{"(", " ", "/"}},
			DefinitionProvider: true, ReferencesProvider: true, RenameProvider: renameOptions{PrepareProvider: true},
			DocumentFormattingProvider: true,
		},
	}, nil
}

func (s *Server) didOpen(ctx context.Context, params openParams) error {
	d := params.TextDocument
	s.open[d.URI] = newDocument(d.URI, d.Text, d.Version, s.utf8)
	return s.publishAll(ctx)
}

func (s *Server) didChange(ctx context.Context, params changeParams) error {
	d := params.TextDocument
	for _, change := range params.ContentChanges {
		s.open[d.URI] = newDocument(d.URI, change.Text, d.Version, s.utf8)
	}
	return s.publishAll(ctx)
}

func (s *Server) didSave(ctx context.Context, _ documentParams) error { return s.publishAll(ctx) }

func (s *Server) didClose(ctx context.Context, params documentParams) error {
	delete(s.open, params.TextDocument.URI)
	if err := s.rpc.Notify(ctx, "textDocument/publishDiagnostics",
		publishParams{URI: params.TextDocument.URI, Diagnostics: []diagnostic{}}); err != nil {
		return err
	}
	return s.publishAll(ctx)
}

// document returns an open document.
func (s *Server) document(uri string) (*document, error) {
	if d := s.open[uri]; d != nil {
		return d, nil
	}
	return nil, jrpc2.Errorf(jrpc2.InvalidParams, "%s is not open", uri)
}

// text returns an open policy file, or the text of a Policy at a place in a manifest; nil if there
// is none.
func (s *Server) text(params placeParams) (*document, error) {
	d, err := s.document(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	return d.textAt(params.Position), nil
}

// beside returns the document and the policy files in its directory, as the editor has them if
// they are open; of a text in a manifest, those in the manifests: it may include no others.
func (s *Server) beside(d *document) []*document {
	if d.part != nil {
		return s.besideInManifests(d)
	}
	all := []*document{d}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(d.path), "*.pol"))
	if err != nil {
		return all // the directory's name is no pattern
	}
	for _, name := range names {
		uri := uriOf(name)
		if name == d.path {
			continue
		}
		if open := s.open[uri]; open != nil {
			all = append(all, open)
		} else if text, err := plainfile.ReadStart(name, policy.MaxText); err == nil {
			all = append(all, newDocument(uri, string(text), 0, s.utf8))
		}
	}
	return all
}
