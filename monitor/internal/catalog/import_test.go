// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func factFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "facts.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestImportFacts(t *testing.T) {
	c := opened(t)
	file := factFile(t, `{"conduit":"friends/alice","says":"friend","tuples":[["bob"],["carol"],["bob"]]}

{"conduit":"blacklist/fr","says":"blocked","tuples":[]}
{"conduit":"ages","says":"age","tuples":[["bob",42]]}`)
	change, err := c.ImportFacts(file)
	if err != nil || len(change.Added) != 3 {
		t.Fatalf("%+v, %v", change, err)
	}
	again, err := c.ImportFacts(file)
	if err != nil || len(again.Added) != 0 {
		t.Errorf("a second import: %v, %v", again, err)
	}
}

func TestImportRefusesBadLinesWhole(t *testing.T) {
	good := `{"conduit":"c","says":"r","tuples":[["x"]]}` + "\n"
	for name, bad := range map[string]string{
		"not JSON":        `{"conduit":`,
		"unknown field":   `{"conduit":"c","says":"r","tuples":[],"tupels":[]}`,
		"missing field":   `{"conduit":"c","tuples":[["x"]]}`,
		"fraction":        `{"conduit":"c","says":"r","tuples":[[1.5]]}`,
		"null":            `{"conduit":"c","says":"r","tuples":[[null]]}`,
		"nested":          `{"conduit":"c","says":"r","tuples":[[["x"]]]}`,
		"two values":      `{"conduit":"c","says":"r","tuples":[]} {}`,
		"not UTF-8":       "{\"conduit\":\"c\xff\",\"says\":\"r\",\"tuples\":[]}",
		"empty conduit":   `{"conduit":"","says":"r","tuples":[["x"]]}`,
		"10 MB value":     `{"conduit":"c","says":"r","tuples":[["` + strings.Repeat("x", 10<<20) + `"]]}`,
		"list at the top": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			c := opened(t)
			before := c.State()
			_, err := c.ImportFacts(factFile(t, good), factFile(t, good+"\n"+bad+"\n"+good))
			var bads *ImportError
			if !errors.As(err, &bads) || bads.Line != 3 || !strings.HasSuffix(bads.File, "facts.jsonl") {
				t.Errorf("error %.200v", err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if c.State() != before {
				t.Error("something was imported")
			}
		})
	}
}

func FuzzFactLine(f *testing.F) {
	f.Add(`{"conduit":"c","says":"r","tuples":[["x",1]]}`)
	f.Add(`{"conduit":"c","says":"r","tuples":[[{"time":"2017-01-01T00:00:00Z"}]]}`)
	f.Fuzz(func(t *testing.T, line string) {
		facts, err := parseFactLine([]byte(line), map[string]string{}, nil)
		if err != nil {
			return
		}
		for _, fact := range facts {
			if err := checkFact(fact); err != nil {
				t.Fatal(err)
			}
			d := &decoder{rest: encodeTuple(fact.Arguments)}
			for i := range fact.Arguments {
				if got := d.value(); got != fact.Arguments[i] {
					t.Fatalf("%v is read back as %v", fact.Arguments[i], got)
				}
			}
		}
	})
}
