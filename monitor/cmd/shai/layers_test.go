// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "shai.dev/monitor"

// layers lists the packages from the top down: each may import those of the layers
// beneath its own, never its own or those above. A package that is not listed fails
// the test, so that a new one gets its place.
var layers = [][]string{
	{"cmd/shai", "cmd/kubectl-shai"},
	{"internal/monitor", "internal/top"},
	{"internal/monitor/page", "internal/offline"},
	{"internal/monitor/api/apitest"}, // for tests
	{"internal/monitor/api"},
	{"internal/distribution", "internal/report"},
	{"internal/report/boards", "internal/report/page", "internal/report/published", "internal/report/sources"},
	{"internal/report/figure"},
	{"internal/pipeline"},
	{"internal/pipeline/pipelinetest"}, // for tests
	{"internal/decision", "internal/meaning", "internal/metrics", "internal/policytest",
		"internal/languageserver"},
	{"internal/analysis", "internal/sandbox", "internal/kvfilter", "internal/factsource", "internal/runtimeroot",
		"internal/taskid", "internal/tasklog"},
	{"internal/supervision", "internal/sandbox/plan", "internal/sandbox/sealing"},
	{"internal/audit"},
	{"internal/catalog"},
	{"internal/manifest"},
	{"internal/knownfacts"},
	{"internal/wire", "internal/content", "internal/typedfile", "internal/pattern", "internal/kvcommand",
		"internal/allowlist"},
	{"policy", "internal/reading"},
	{"internal/look", "internal/pemfile", "internal/shape"},
	{"internal/audit/records", "internal/bug", "internal/codec", "internal/edition", "internal/plainfile",
		"internal/shellword", "internal/waiting"}, // the last for tests
}

type listed struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Error        *struct{ Err string }
}

func packages(t *testing.T) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports,Error",
		module+"/...")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
}

func layerOf(path string) int {
	name := strings.TrimPrefix(path, module+"/")
	return slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, name) })
}

// Imports only go down.
func TestLayers(t *testing.T) {
	for _, p := range packages(t) {
		own := layerOf(p.ImportPath)
		if own < 0 {
			t.Errorf("%s has no layer; give it its place in layers", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, module) && layerOf(imported) <= own {
				t.Errorf("%s imports %s, which is not beneath it", p.ImportPath, imported)
			}
		}
		// Tests may use the fake monitor, and the package that they test.
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if strings.HasPrefix(imported, module) && layerOf(imported) <= own && imported != p.ImportPath &&
				imported != module+"/internal/monitor/api/apitest" {
				t.Errorf("tests of %s import %s, which is not beneath it", p.ImportPath, imported)
			}
		}
	}
}

// impure lists the packages that a package without input or output never imports,
// including those beneath them. harmless lists the exceptions.
var (
	impure = []string{"os", "net", "syscall", "log", "io/ioutil", "math/rand", "crypto/rand", "golang.org/x/sys",
		"golang.org/x/net", "path/filepath"}
	harmless = []string{"net/netip", "net/url", "golang.org/x/net/bpf"}
	clock    = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
)

// documented reads the table of folders in docs/architecture.md: which packages there
// are, and which of them are pure.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	pure := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `monitor/([^`]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		pure[row[1]] = strings.HasSuffix(row[2], ". Pure")
	}
	return pure
}

// A package that docs/architecture.md calls pure does no input or output and reads no
// clock: what it decides depends on what it is given alone. Every package has its row.
func TestPurePackages(t *testing.T) {
	rows := documented(t)
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		pure, listed := rows[name]
		if !listed {
			t.Errorf("%s has no row in docs/architecture.md, which says whether it is pure", name)
		}
		delete(rows, name)
		if !pure {
			continue
		}
		for _, imported := range p.Imports {
			if isImpure(imported) {
				t.Errorf("%s imports %s: it must stay a pure function of what it is given", name, imported)
			}
		}
		for _, file := range p.GoFiles {
			for _, call := range clockCalls(t, filepath.Join(p.Dir, file)) {
				t.Errorf("%s/%s uses %s: it must be given the time", name, file, call)
			}
		}
	}
	for name := range rows {
		t.Errorf("docs/architecture.md has a row for monitor/%s, and there is no such package", name)
	}
}

func isImpure(imported string) bool {
	return !slices.Contains(harmless, imported) && slices.ContainsFunc(impure, func(one string) bool {
		return imported == one || strings.HasPrefix(imported, one+"/")
	})
}

// clockCalls lists what a file uses of the clock.
func clockCalls(t *testing.T, path string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if selected, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := selected.X.(*ast.Ident); ok && of.Name == "time" && slices.Contains(clock, selected.Sel.Name) {
				found = append(found, "time."+selected.Sel.Name)
			}
		}
		return true
	})
	return found
}
