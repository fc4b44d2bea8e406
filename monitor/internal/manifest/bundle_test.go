// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shai.dev/monitor/policy"
)

const examples = "../../../crds/examples/syse"

func bundle(t testing.TB, texts ...string) *Bundle {
	t.Helper()
	var sources []Source
	for i, text := range texts {
		sources = append(sources, Source{Name: fmt.Sprint("f", i), Text: text})
	}
	b, err := Parse(sources...).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExamplesAreValid(t *testing.T) {
	sources, err := Read(nil, examples)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse(sources...).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	define := map[string]string{"JAVA": "/java/bin/java", "JAVA_HOME": "/java", "SYSE": "/syse",
		"REDIS_SOCKET": "/run/redis", "KEYS": "/srv/keys"}
	r, err := b.Resolve("syse", define)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Tasks[2].Spec.Command; got[0] != "/java/bin/java" || got[len(got)-1] != "none" ||
		r.Pipeline.Spec.KeyValue.Socket != "/run/redis" {
		t.Errorf("command %q, store %q", got, r.Pipeline.Spec.KeyValue.Socket)
	}
}

// The hash names the content: not the files it came in, nor their order, comments,
// or way of writing.
func TestHashIsOfTheContent(t *testing.T) {
	text := valid(t)
	documents := strings.Split(text, "---\n")
	want := bundle(t, text).Hash()
	rapid.Check(t, func(rt *rapid.T) {
		shuffled := rapid.Permutation(documents).Draw(rt, "documents")
		if got := bundle(t, shuffled...).Hash(); got != want {
			rt.Errorf("hash %s, want %s", got, want)
		}
	})
	rewritten := strings.NewReplacer("run: Once", `"run": "Once" # comment`, "taint: {name: everyone}",
		"taint:\n    name: everyone").Replace(text)
	if got := bundle(t, rewritten).Hash(); got != want {
		t.Error("the way of writing changes the hash")
	}
	for _, change := range [][2]string{
		{"run: Once", "run: Always"}, {"name: alice", "name: alicia"}, {"value: none", "value: leak"},
		{"tasks: [reader, worker]", "tasks: [worker, reader]"},
		{"127.0.1.0/24", "127.0.2.0/24"}, {"update :- sKeyIs(owner).", "update :- sKeyIs(\"bob\")."},
	} {
		if bundle(t, strings.Replace(text, change[0], change[1], 1)).Hash() == want {
			t.Errorf("%q for %q does not change the hash", change[1], change[0])
		}
	}
}

func TestRestore(t *testing.T) {
	sources, err := Read(nil, examples)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse(sources...).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore(b.Canonical())
	if err != nil || again.Hash() != b.Hash() || again.Len() != b.Len() {
		t.Fatalf("restored %v: %v", again, err)
	}
	if _, err := Restore(append([]byte("# altered\n"), b.Canonical()...)); err == nil {
		t.Error("bytes that are not canonical were restored")
	}
	if _, err := Restore(b.Canonical()[:len(b.Canonical())/2]); err == nil {
		t.Error("half a bundle was restored")
	}
}

func TestTuplesKeepTheirTypes(t *testing.T) {
	text := `
apiVersion: shai.dev/v1alpha1
kind: FactSource
metadata: {name: a}
spec:
  inline:
    - {conduit: c, says: s, tuples: [["1", 1, 2026-03-01T12:00:00Z, "2026-03-01T12:00:00Z",
      -9223372036854775808, "é<&>\u2028"]]}
`
	instant := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := policy.NewTuple(policy.String("1"), policy.Integer(1), policy.Time(instant),
		policy.String("2026-03-01T12:00:00Z"),
		policy.Integer(-9223372036854775808), policy.String("é<&>\u2028"))
	b := bundle(t, text)
	restored, err := Restore(b.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []*Bundle{b, restored} {
		if got := one.FactSources()[0].Spec.Inline[0].Tuples[0]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestOverAndChanges(t *testing.T) {
	first := bundle(t, valid(t))
	if got := first.Changes(nil); len(got) != first.Len() || got[0].What != "created" {
		t.Errorf("changes to nothing: %+v", got)
	}
	patch := `
apiVersion: shai.dev/v1alpha1
kind: Principal
metadata: {name: bob}
spec: {publicKey: "00000000000000000000000000000000000000000000000000000000000000aa"}
---
apiVersion: shai.dev/v1alpha1
kind: Principal
metadata: {name: alice}
spec: {publicKey: "00000000000000000000000000000000000000000000000000000000000000bb"}
`
	second, err := Parse(Source{Name: "patch", Text: patch}).Over(first).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range second.Changes(first) {
		if change.What != "unchanged" {
			got = append(got, change.Kind+"/"+change.Name+" "+change.What)
		}
	}
	if diff := cmp.Diff([]string{"Principal/alice configured", "Principal/bob created"}, got); diff != "" {
		t.Error(diff)
	}
	alone := bundle(t, patch)
	pruned := 0
	for _, change := range alone.Changes(second) {
		if change.What == "pruned" {
			pruned++
		}
	}
	if pruned != second.Len()-2 {
		t.Errorf("%d objects pruned, want %d", pruned, second.Len()-2)
	}
}

func TestResolve(t *testing.T) {
	b := bundle(t, valid(t))
	before := b.Hash()
	r, err := b.Resolve("demo", map[string]string{"BIN": "/bin", "STORE": "/s", "FAULT": "$(BIN) stays"})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{r.Tasks[0].Spec.Command[0], r.Tasks[0].Spec.Command[2], r.Tasks[0].Spec.Environment[0].Value,
		r.Pipeline.Spec.KeyValue.Socket}
	if diff := cmp.Diff([]string{"/bin/reader", "$(BIN) stays", "/bin", "/s"}, got); diff != "" {
		t.Error(diff)
	}
	if again, err := Restore(b.Canonical()); err != nil || again.Hash() != before ||
		all[Task](b)[0].Spec.Command[0] != "$(BIN)/reader" {
		t.Error("resolving altered the bundle")
	}
	_, err = b.Resolve("demo", map[string]string{"BNI": "/bin", "FAULT": ""})
	want := `f0:51:13: Task reader: spec.command[0]: $(BIN) is not defined; did you mean "BNI"?
f0:53:27: Task reader: spec.environment[0].value: $(BIN) is not defined; did you mean "BNI"?
f0:64:13: Task worker: spec.command[0]: $(BIN) is not defined; did you mean "BNI"?
f0:104:13: Pipeline demo: spec.keyValue.socket: $(STORE) is not defined; start the monitor with --define STORE=…, or add it to the pipeline's spec.variables`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	if _, err := b.Resolve("nonesuch", nil); err == nil {
		t.Error("a pipeline that does not exist was resolved")
	}
}

func TestRead(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{"b.yaml": "b", "a.json": "a", "kustomization.yaml": "k", "README.md": "r",
		"c.yml": "c"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := Read(strings.NewReader("stdin"), directory, "-")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, source := range sources {
		got = append(got, filepath.Base(source.Name)+"="+source.Text)
	}
	if diff := cmp.Diff([]string{"a.json=a", "b.yaml=b", "c.yml=c", "standard input=stdin"}, got); diff != "" {
		t.Error(diff)
	}
	large := filepath.Join(directory, "large.yaml")
	if err := os.WriteFile(large, make([]byte, MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{large, filepath.Join(directory, "nonesuch"), t.TempDir()} {
		if _, err := Read(nil, path); err == nil || !strings.Contains(err.Error(), "read manifest") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Every rule tag can be parsed, and every kind has fields for it.
func TestEveryKindDecodes(t *testing.T) {
	for _, kind := range kindOrder {
		err := check("apiVersion: " + APIVersion + "\nkind: " + kind + "\nmetadata: {name: a}\nspec: {}\n")
		if err == nil || strings.Contains(err.Error(), "is not a kind") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(valid(f))
	f.Add("a: &a [*a]")
	f.Add("{[: !!binary x")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := Parse(Source{Name: "f", Text: text}).Bundle()
		if err != nil {
			return
		}
		again, err := Restore(b.Canonical())
		if err != nil || again.Hash() != b.Hash() {
			t.Errorf("what was accepted cannot be restored: %v\n%s", err, b.Canonical())
		}
	})
}

// A few variables that name one another would otherwise be longer than the memory, for
// whoever checks the pipelines of a namespace.
func TestVariablesAreReplacedOnce(t *testing.T) {
	var variables []string
	for i := range 64 {
		variables = append(variables, fmt.Sprintf(`{name: A%d, value: "$(A%d)$(A%[2]d)"}`, i, i+1))
	}
	doubling := strings.Replace(claiming("first", listening("127.0.0.1:$(A0)")), `{name: PORT, value: "80"}`,
		strings.Join(variables, ", "), 1)
	_, err := Parse(Source{Name: "f", Text: shared + doubling + "---\n" +
		strings.Replace(doubling, "name: first", "name: second", 1)}).Bundle()
	if err == nil || !strings.Contains(err.Error(), "conduit documents of pipeline second listens on") {
		t.Error("variables that name others are not compared as they are replaced, once:", err)
	}
}

func TestTextsWithVariablesAreLimited(t *testing.T) {
	for name, test := range map[string]struct {
		argument string
		refused  bool
	}{
		"as long as an argument may be": {strings.Repeat("$(LONG)", 4), false},
		"longer":                        {strings.Repeat("$(LONG)", 4) + "x", true},
		"longer than the memory":        {strings.Repeat("$(LONG)", 4000), true},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(valid(t), "$(FAULT)", test.argument, 1)
			_, err := bundle(t, text).Resolve("demo", map[string]string{"BIN": "/bin", "STORE": "/s", "FAULT": "",
				"LONG": strings.Repeat("x", 32<<10)})
			if refused := err != nil && strings.Contains(err.Error(), "with its variables replaced the text has"); refused != test.refused {
				t.Error(err)
			}
		})
	}
}
