// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"shai.dev/monitor/internal/manifest"
)

// heldBy returns how many bytes what do returns takes.
func heldBy[T any](do func() T) (held int64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result := do()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(result)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// A short text can stand for many facts: what is refused is refused before it takes its multiple in memory.
func TestAnswersOfManyFactsAreLimited(t *testing.T) {
	var answer string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	lines := func(tuple string, count int) string {
		line := `{"conduit":"c","says":"r","tuples":[` + tuple + strings.Repeat(","+tuple, 9999) + "]}\n"
		return strings.Repeat(line, count/10000)
	}
	source := opened(t, at(server.URL, ""), Login{})
	for name, test := range map[string]struct{ answer, want string }{
		"empty tuples": {`{"conduit":"c","says":"r","tuples":[[]` + strings.Repeat(",[]", maxFacts) + "]}",
			"more than 4194304 tuples; divide the facts"},
		"short values": {`{"conduit":"c","says":"r","tuples":[[1` + strings.Repeat(",1", maxValues) + "]]}",
			"more than 8388608 values; divide the facts"},
		"a long value": {`{"conduit":"c","says":"r","tuples":[["` + strings.Repeat("x", 5000) + `"]]}`,
			`"c" says r: a value has 5000 bytes; at most 4096 are allowed`},
	} {
		answer = test.answer
		fails(t, source, "", test.want)
		t.Logf("%s: %d bytes", name, len(answer))
	}
	const facts = 100_000
	answer = lines(`["a"]`, facts)
	counted := &tally{mostFacts: facts / 2, mostValues: facts}
	_, err := readStatements(strings.NewReader(answer), "f", manifest.Declared{}, counted.add)
	if !errors.Is(err, errTooMany) || !strings.HasPrefix(err.Error(), "f:5: ") {
		t.Errorf("lines of too many facts together: %v", err)
	}
	held := heldBy(func() Update {
		update, err := source.Fetch(t.Context(), "")
		if err != nil || len(update.Whole.Facts) != facts {
			t.Errorf("%v", err)
		}
		return update
	})
	// docs/guide.md says so.
	if each := held / facts; each > 160 {
		t.Errorf("a fact of one short value takes %d bytes", each)
	} else {
		t.Logf("a fact of one short value takes %d bytes, %d times its text", each, held/int64(len(answer)))
	}
}
