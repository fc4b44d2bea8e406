// SPDX-License-Identifier: BSD-2-Clause

package factsource

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// friendDeclared declares r(string) and friend(string), the latter of friends/{user} only.
var friendDeclared = []manifest.Relation{
	{Name: "friend", Arguments: []manifest.RelationArgument{{Name: "who", Type: "string"}}, Conduits: []string{"friends/{user}"}},
	{Name: "r", Arguments: []manifest.RelationArgument{{Type: "string"}}},
}

// Every line that contradicts the declarations is named, at once.
func TestStatementsThatContradictTheirDeclarations(t *testing.T) {
	declared := manifest.FactSourceSpec{Relations: friendDeclared}.Declared()
	text := `{"conduit":"friends/alice","says":"friend","tuples":[["bob"]]}
{"conduit":"friends/alice","says":"friend","tuples":[["bob"],[7]]}
nonsense
{"conduit":"friends/alice","says":"friend","tuples":[["bob","carol"]]}
{"conduit":"fiends/alice","says":"friend","tuples":[["bob"]]}
{"conduit":"friends/alice","says":"enemy","tuples":[["bob"]]}
`
	_, err := ReadStatements(strings.NewReader(text), "f", declared)
	if err == nil {
		t.Fatal("facts that contradict their declaration are taken")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		`f:2: "friends/alice" says friend: 7 in the tuple (7) is an integer; spec.relations declares friend(who: string)`,
		"f:3: not a fact statement",
		`f:4: "friends/alice" says friend: the tuple ("bob", "carol") has 2 values; spec.relations declares friend(who: string)`,
		`f:5: "fiends/alice" says friend: spec.relations declares other conduits for relation friend`,
		`f:6: "friends/alice" says enemy: spec.relations does not declare relation enemy`,
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of the error: want %s in\n%v", i+1, want, err)
		}
	}
	if _, err := ReadStatements(strings.NewReader(text[:strings.Index(text, "\n")]), "f", declared); err != nil {
		t.Errorf("facts as declared: %v", err)
	}
	_, err = ReadStatements(strings.NewReader(strings.Repeat("nonsense\n", 1000)), "f", declared)
	if got := strings.Count(fmt.Sprint(err), "\n") + 1; got != wrongLines {
		t.Errorf("an error has %d lines, want %d", got, wrongLines)
	}
}

// Facts that are fetched are compared with the declarations, too.
func TestFetchedFactsThatContradictTheirDeclarations(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(says))
	defer server.Close()
	spec := at(server.URL, "")
	spec.Relations = friendDeclared
	fails(t, opened(t, spec, Login{}), "", `:1: "friends/alice" says friend: the tuple ("carol", 17) has 2 values`)

	store, socket := startStore(t)
	do(t, store, "SADD", "friends:alice", "bob")
	spec = keysOf(socket, manifest.FactKeys{Pattern: "friends:{user}", Conduit: "friends/{user}", Says: "enemy"})
	spec.Relations = friendDeclared
	fails(t, opened(t, spec, Login{}), "", `"friends/alice" says enemy: spec.relations does not declare relation enemy`)
	spec.Redis.Keys[0].Says = "friend"
	if got, _ := whole(t, opened(t, spec, Login{})); len(got) != 1 {
		t.Error(got)
	}

	spec = streamOf(socket)
	spec.Relations = friendDeclared
	entry(t, store, "add", "c", `["x"]`)
	source := opened(t, spec, Login{})
	_, position := whole(t, source)
	wrong := entry(t, store, "add", "c", `["x", "y"]`)
	fails(t, source, position, fmt.Sprintf(`entry %s: "c" says r: the tuple ("x", "y") has 2 values`, wrong))
	do(t, store, "XDEL", "facts", wrong)
}

// FuzzDeclaredStatements reads any text as a fact file: what is accepted is as declared.
func FuzzDeclaredStatements(f *testing.F) {
	f.Add([]byte(statement))
	f.Add([]byte(`{"conduit":"friends/alice","says":"friend","tuples":[["bob"]]}` + "\n\n" + `{"conduit":"c","says":"r","tuples":[["x"]]}`))
	f.Add([]byte(`{"conduit":"c","says":"r","tuples":[[{"time":"2027-01-01T00:00:00Z"},-9223372036854775808,null]]}`))
	declared := manifest.FactSourceSpec{Relations: friendDeclared}.Declared()
	f.Fuzz(func(t *testing.T, text []byte) {
		facts, err := ReadStatements(bytes.NewReader(text), "f", declared)
		if err != nil {
			return
		}
		for _, fact := range facts {
			if err := declared.Check(fact.Conduit, fact.Relation, policy.NewTuple(fact.Arguments...)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What the monitor could not use is refused with its line, also if only two lines together are wrong.
func TestStatementsThatTheMonitorCannotUse(t *testing.T) {
	_, err := ReadStatements(strings.NewReader(`{"conduit": "regions", "says": "prefix", "tuples": [["10.0.0.0/8", "de"]]}
{"conduit": "regions", "says": "prefix", "tuples": [["10.0.0.0/8", "us"]]}
{"conduit": "list", "says": "Bad", "tuples": [["a"]]}
`), "f", manifest.Declared{})
	for _, want := range []string{`f:2: "regions" says prefix: network 10.0.0.0/8 is in region "de"`, `f:3: "Bad" is no name of a relation`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What the monitor could not use is refused from stores, too.
func TestFetchedFactsThatTheMonitorCannotUse(t *testing.T) {
	store, socket := startStore(t)
	do(t, store, "SADD", "nets:de", "10.0.0.0/8")
	fails(t, opened(t, keysOf(socket, manifest.FactKeys{Pattern: "nets:{region}", Conduit: "regions", Says: "prefix"}),
		Login{}), "", `"regions" says prefix: expected a network and its region`)

	network := func(op, text, region string) string {
		return do(t, store, "XADD", "facts", "*", "op", op, "conduit", "regions", "says", "prefix", "tuple",
			fmt.Sprintf("[%q, %q]", text, region))
	}
	network("add", "10.0.0.0/8", "de")
	network("add", "10.0.0.0/8", "us")
	network("remove", "10.0.0.0/8", "de")
	source := opened(t, streamOf(socket), Login{})
	got, position := whole(t, source)
	if len(got) != 1 {
		t.Errorf("a network that moves: %v", got)
	}
	wrong := network("add", "10.0.0.0", "de")
	fails(t, source, position, fmt.Sprintf(`entry %s: "regions" says prefix: "10.0.0.0" is no network`, wrong))
}
