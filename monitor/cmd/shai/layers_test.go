// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "shai.dev/monitor"

// layers lists the packages from the top down: each may import those of the layers
// beneath its own, never its own or those above. A package that is not listed fails
// the test, so that a new one gets its place.
var layers = [][]string{
	{"cmd/shai"},
	{"internal/monitor"},
	{"internal/monitor/api/apitest"}, // for tests
	{"internal/monitor/api"},
	{"internal/analysis", "internal/sandbox", "internal/kvfilter", "internal/factsource", "internal/runtimeroot"},
	{"internal/wire", "internal/audit"},
	{"internal/catalog"},
	{"internal/manifest"},
	{"internal/pattern"},
	{"policy"},
	{"internal/bug"},
}

// pure are the packages that do no I/O, by what they must not import.
var pure = map[string][]string{
	"internal/pattern": {"os", "net", "syscall", "log"},
	"policy":           {"os", "net", "net/http", "syscall", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog"},
}

type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Error        *struct{ Err string }
}

func packages(t *testing.T) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports,Error", module+"/...")
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
			if strings.HasPrefix(imported, module) && layerOf(imported) <= own && imported != p.ImportPath && layerOf(imported) != 2 {
				t.Errorf("tests of %s import %s, which is not beneath it", p.ImportPath, imported)
			}
		}
	}
}

// What decides does no I/O.
func TestPurePackages(t *testing.T) {
	checked := 0
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			if slices.Contains(pure[strings.TrimPrefix(p.ImportPath, module+"/")], imported) {
				t.Errorf("%s imports %s: it must stay a pure function of what it is given", p.ImportPath, imported)
			}
		}
		if pure[strings.TrimPrefix(p.ImportPath, module+"/")] != nil {
			checked++
		}
	}
	if checked != len(pure) {
		t.Errorf("%d of %d pure packages were found", checked, len(pure))
	}
}
