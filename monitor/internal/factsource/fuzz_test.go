// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

var place = regexp.MustCompile(`^f:(\d+): .`)

// For any file of facts: no panic, each error names its line, and facts that are read survive
// being written.
func FuzzReadStatements(f *testing.F) {
	for _, text := range []string{
		"", "\n\n", "{}", `{"conduit":"friends/alice","says":"friend","tuples":[["bob"],["carol"]]}`,
		`{"conduit":"c","says":"r","tuples":[[],[1,-2,{"time":"2026-06-01T12:00:00Z"}]]}` + "\n" + `{"conduit":"c"}`,
		`{"conduit":"c","says":"r","tuples":[[null]]}`, `{"conduit":"c","says":"r","tuples":[["a"]]} {}`, "{\n}",
		`{"conduit":"c","says":"r","tuples":[["\ud800"]]}`, "[" + strings.Repeat("[", 1000),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		facts, err := ReadStatements(bytes.NewReader(text), "f", manifest.Declared{})
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\nf:") {
				found := place.FindStringSubmatch("f:" + strings.TrimPrefix(line, "f:"))
				if found == nil {
					t.Fatalf("%q has no line", line)
				}
				if number, _ := strconv.Atoi(found[1]); number < 1 || number > bytes.Count(text, []byte("\n"))+1 {
					t.Fatalf("%q is about a line that is not there", line)
				}
			}
			return
		}
		var written bytes.Buffer
		for _, fact := range facts {
			statement := manifest.FactStatement{Conduit: fact.Conduit, Says: fact.Relation,
				Tuples: []policy.Tuple{policy.NewTuple(fact.Arguments...)}}
			if err := json.NewEncoder(&written).Encode(statement); err != nil {
				t.Fatal(err)
			}
		}
		again, err := ReadStatements(&written, "f", manifest.Declared{})
		if diff := cmp.Diff(texts(facts), texts(again)); diff != "" || err != nil {
			t.Fatalf("%v: %s", err, diff)
		}
	})
}

func texts(facts []policy.Fact) (texts []string) {
	for _, fact := range facts {
		texts = append(texts, fact.String())
	}
	return texts
}
