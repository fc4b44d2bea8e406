// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/kvcommand"
)

func valid(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/valid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func check(text string) error {
	_, err := Parse(Source{Name: "f", Text: text}).Bundle()
	return err
}

func TestValidManifestHasNoErrors(t *testing.T) {
	if err := check(valid(t)); err != nil {
		t.Error(err)
	}
}

func ungrantable(command string) string { return kvcommand.Check(command, kvcommand.Read).Error() }

// Each case makes one mistake in the valid manifest. The error says where, what, and
// what may have been meant; there are no others beside it.
func TestErrors(t *testing.T) {
	for _, test := range []struct{ name, old, new, at, want string }{
		{"unknown field", "  command: [$(BIN)/worker]", "  commnad: [a]\n  command: [/b]", "commnad: [a]",
			`Task worker: spec.commnad: unknown field; did you mean "command"?`},
		{"unknown field without a near one", "  run: Once", "  frequency: 3", "frequency: 3",
			`Task reader: spec.frequency: unknown field; known: command, environment, parameters, raisesTo, reads, resources, run, runtime, runtimeName, taint, writes`},
		{"unknown field deep down", "egress: true", "egres: true", "egres: true",
			`Pipeline demo: spec.conduits[3].egres: unknown field; did you mean "egress"?`},
		{"field in the wrong place", "kind: Principal\n", "kind: Principal\npublicKey: x\n", "publicKey: x",
			`Principal alice: publicKey: unknown field; known: metadata, spec`},
		{"field twice", "  run: Once", "  run: Once\n  run: Always", "run: Always",
			`Task reader: spec.run: the field is given twice; keep one of them`},
		{"number for a text", "  name: regions\n", "  name: 17\n", "17",
			`FactSource 17: metadata.name: expected a text, got the number 17; put it in quotes: "17"`},
		{"truth value for a text", "value: none}", "value: true}", "true}",
			`Pipeline demo: spec.variables[0].value: expected a text, got the truth value true; put it in quotes: "true"`},
		{"text for a list", "reads: [documents]", "reads: documents", "documents",
			`Task reader: spec.reads: expected a list, got the text "documents"; write it as [item, item] or as lines that begin with "- "`},
		{"list for a mapping", "  taint: {name: everyone}", "  taint: [everyone]", "[everyone]",
			`Task reader: spec.taint: expected a mapping with the fields name, arguments, got a list`},
		{"text for a truth value", "ingress: true", `ingress: "true"`, `"true"`,
			`Pipeline demo: spec.conduits[0].ingress: expected true or false, got the text "true"`},
		{"text for a number", "slots: 4", "slots: four", "four",
			`Pipeline demo: spec.conduits[2].slots: expected a whole number, got the text "four"`},
		{"number out of range", "slots: 4", "slots: 33", "33",
			`Pipeline demo: spec.conduits[2].slots: 33 is out of range; expected 1 to 32`},
		{"negative number", "slots: 4", "slots: -1", "-1",
			`Pipeline demo: spec.conduits[2].slots: -1 is out of range; expected 1 to 32`},
		{"enum", "run: Once", "run: once", "once",
			`Task reader: spec.run: "once" is not allowed; expected Once or Always; did you mean "Once"?`},
		{"enum without a near one", "run: Once", "run: hourly", "hourly",
			`Task reader: spec.run: "hourly" is not allowed; expected Once or Always`},
		{"missing field", "  taint: {name: everyone}\n", "", "command: [$(BIN)/r",
			`Task reader: spec.taint: the field is missing; expected a mapping with the fields name, arguments`},
		{"null is missing", "  taint: {name: everyone}\n", "  taint:\n", "command: [$(BIN)/r",
			`Task reader: spec.taint: the field is missing; expected a mapping with the fields name, arguments`},
		{"empty list", "command: [$(BIN)/worker]", "command: []", "[]",
			`Task worker: spec.command: the list is empty; expected at least one item`},
		{"empty item", "reads: [documents]", "reads: [documents, ~]", "~]",
			`Task reader: spec.reads[1]: the item is empty; expected a text`},
		{"paths of a runtime", "run: Once", "run: Once\n  runtime: [/usr/lib, /lib]", "[/usr/lib, /l",
			`Task reader: spec.runtime: a task no longer chooses the paths of its runtime; ` + ChooseRuntime},
		{"name of a runtime in the place of its paths", "run: Once", "run: Once\n  runtime: python", "python",
			`Task reader: spec.runtime: a task no longer chooses the paths of its runtime; ` + ChooseRuntime},
		{"path as the name of a runtime", "run: Once", "run: Once\n  runtimeName: /usr/lib", "/usr/lib",
			`Task reader: spec.runtimeName: "/usr/lib" is not a name; expected lower-case letters, digits and inner hyphens, at most 63`},
		{"path that leads up as the name of a runtime", "run: Once", "run: Once\n  runtimeName: ../x", "../x",
			`Task reader: spec.runtimeName: "../x" is not a name; expected lower-case letters, digits and inner hyphens, at most 63`},
		{"variable as the name of a runtime", "run: Once", "run: Once\n  runtimeName: $(DATA)", "$(DATA)",
			`Task reader: spec.runtimeName: "$(DATA)" is not a name; expected lower-case letters, digits and inner hyphens, at most 63`},
		{"name missing", "metadata:\n  name: alice", "metadata: {}", "{}",
			`Principal: metadata.name: the field is missing; expected a text`},
		{"name not a label", "name: alice", "name: Alice_", "Alice_",
			`Principal Alice_: metadata.name: "Alice_" is not a name; expected lower-case letters, digits and inner hyphens, at most 63`},
		{"kind missing", "kind: Principal\n", "", "apiVersion: shai.d",
			`alice: kind: the field is missing; expected Policy, FactSource, Principal, Task or Pipeline`},
		{"kind unknown", "kind: Principal", "kind: Principle", "Principle",
			`alice: kind: "Principle" is not a kind; expected Policy, FactSource, Principal, Task or Pipeline; did you mean "Principal"?`},
		{"version unknown", "apiVersion: shai.dev/v1alpha1\nkind: Principal",
			"apiVersion: shai.dev/v2\nkind: Principal", "shai.dev/v2",
			`Principal alice: apiVersion: "shai.dev/v2" is not a known version; expected shai.dev/v1alpha1`},
		{"version missing", "apiVersion: shai.dev/v1alpha1\nkind: Principal", "kind: Principal", "kind: Principal",
			`Principal alice: apiVersion: the field is missing; expected shai.dev/v1alpha1`},
		{"not an object", "---\napiVersion: shai.dev/v1alpha1\nkind: Principal",
			"---\n- a\n---\napiVersion: shai.dev/v1alpha1\nkind: Principal", "- a",
			`expected an object with apiVersion, kind, metadata and spec, got a list`},
		{"dangling policy", "{name: everyone}\n  reads", "{name: everybody}\n  reads", "everybody}",
			`Task reader: spec.taint.name: there is no Policy "everybody"; did you mean "everyone"?`},
		{"dangling policy of a path", `"/corpus/private/{owner}/**", policy: {name: private`,
			`"/corpus/private/{owner}/**", policy: {name: privat`, "privat, arguments:",
			`Pipeline demo: spec.conduits[0].paths[0].policy.name: there is no Policy "privat"; did you mean "private"?`},
		{"dangling task", "tasks: [reader, worker]", "tasks: [reader, worker, raeder]", "raeder]",
			`Pipeline demo: spec.tasks[2]: there is no Task "raeder"; did you mean "reader"?`},
		{"raises to no task of the pipeline", "run: Once", "run: Once\n  raisesTo: [wroker]", "wroker]",
			`Task reader: spec.raisesTo[0]: "wroker" is not one of the tasks of pipeline demo; did you mean "worker"?`},
		{"raises to no task of the pipeline, spelled like itself", "run: Once", "run: Once\n  raisesTo: [readr]", "readr]",
			`Task reader: spec.raisesTo[0]: "readr" is not one of the tasks of pipeline demo; add it to spec.tasks of the pipeline, or remove it`},
		{"raises to a task with parameters", "run: Once", "run: Once\n  raisesTo: [worker]", "worker]",
			`Task reader: spec.raisesTo[0]: tasks with parameters do not raise their taint, and no task raises its own to theirs; remove it: an instance gets its taint by a login, and keeps it`},
		{"raises although it has parameters", "  command: [$(BIN)/worker]", "  command: [$(BIN)/worker]\n  raisesTo: [reader]", "reader]",
			`Task worker: spec.raisesTo[0]: tasks with parameters do not raise their taint, and no task raises its own to theirs; remove it: an instance gets its taint by a login, and keeps it`},
		{"argument missing", `private, arguments: {owner: "{user}"}}`, `private}`, "{name: private}",
			`Task worker: spec.taint.arguments: parameter "owner" of policy private gets no value`},
		{"argument unknown", `{owner: "{user}"}`, `{owner: "{user}", onwer: x}`, "x}}",
			`Task worker: spec.taint.arguments.onwer: policy private has no parameter "onwer"; did you mean "owner"?`},
		{"argument's placeholder", `"{user}"`, `"{usr}"`, `"{usr}"}}`,
			`Task worker: spec.taint.arguments.owner: {usr} stands for nothing here; did you mean "user"?`},
		{"path's placeholder", `"profile:{owner}"`, `"profile:{user}"`, `"{owner}"}}}`,
			`Pipeline demo: spec.conduits[1].paths[0].policy.arguments.owner: {owner} stands for nothing here; known: user`},
		{"unknown conduit read", "reads: [documents]", "reads: [docments]", "docments]",
			`Task reader: spec.reads[0]: pipeline demo has no conduit "docments"; did you mean "documents"?`},
		{"unknown conduit written", "writes: [queries]", "writes: [quieres]", "quieres]",
			`Task reader: spec.writes[0]: pipeline demo has no conduit "quieres"; did you mean "queries"?`},
		{"wrong end of a pipe", "reads: [documents]", "reads: [documents, queries]", "queries]",
			`Task reader: spec.reads[1]: "queries" ends at task worker in pipeline demo`},
		{"other wrong end of a pipe", "writes: [profiles, web]", "writes: [profiles, web, queries]", "queries]",
			`Task worker: spec.writes[2]: "queries" begins at task reader in pipeline demo`},
		{"listed twice", "reads: [documents]", "reads: [documents, documents]", "documents]",
			`Task reader: spec.reads[1]: "documents" is listed twice; keep one of them`},
		{"field of another kind", "      ingress: true", "      ingress: true\n      slots: 3", "3",
			`Pipeline demo: spec.conduits[0].slots: a conduit of kind file has no slots`},
		{"field that the kind needs", "      listen: \"127.0.0.1:8640\"\n", "", "name: web",
			`Pipeline demo: spec.conduits[3].listen: the field is missing; a conduit of kind connection needs listen, task`},
		{"no store for tuples", "  keyValue:\n    socket: $(STORE)\n", "", "variables:",
			`Pipeline demo: spec: keyValue is missing; conduit "profiles" holds tuples`},
		{"command that no task gets", "[SET]", "[SET, KEYS]", "KEYS]",
			`Pipeline demo: spec.conduits[1].access.write[1]: ` + ungrantable("KEYS")},
		{"command with a rule", "[GET]", `["get ~*"]`, `"get ~*"`,
			`Pipeline demo: spec.conduits[1].access.read[0]: ` + ungrantable("get ~*")},
		{"command that writes", "[GET]", "[getset]", "getset",
			`Pipeline demo: spec.conduits[1].access.read[0]: command GETSET writes; list it under write`},
		{"address", "127.0.0.1:8640", "localhost", `"localhost"`,
			`Pipeline demo: spec.conduits[3].listen: "localhost" is not an address; expected a form such as 127.0.0.1:8640`},
		{"address that nobody dials", "127.0.0.1:8640", "0.0.0.0:8640", `"0.0.0.0:8640"`,
			`Pipeline demo: spec.conduits[3].listen: users cannot dial "0.0.0.0:8640"; write where they do into the field service, such as search.example.org:443`},
		{"service without a port", `listen: "127.0.0.1:8640"`, `listen: "127.0.0.1:8640"` + "\n      service: Example.org", `Example.org`,
			`Pipeline demo: spec.conduits[3].service: "Example.org" is not a host and a port; expected a form such as search.example.org:443, in lower case and of at most 95 bytes`},
		{"service of a file", "      ingress: true", "      ingress: true\n      service: example.org:443", "example.org:443",
			`Pipeline demo: spec.conduits[0].service: a conduit of kind file has no service`},
		{"relative path", `"/corpus/private`, `"corpus/private`, `"corpus/private/{o`,
			`Pipeline demo: spec.conduits[0].paths[0].path: "corpus/private/{owner}/**" does not begin with /; expected a path beneath the data directory`},
		{"path that climbs", "/facts/population.jsonl", "/facts/../../etc/passwd", "/facts/../../etc/p",
			`FactSource population: spec.file.path: "/facts/../../etc/passwd" has the segment ".."; expected a plain path`},
		{"wildcard inside", "/corpus/private/{owner}/**", "/corpus/**/{owner}/x", `"/corpus/**/{owner`,
			`Pipeline demo: spec.conduits[0].paths[0].path: ** stands before the end of "/corpus/**/{owner}/x"; expected it last`},
		{"wildcard with text", "/corpus/private/{owner}/**", "/corpus/private/{owner}/*.txt", `"/corpus/private/{`,
			`Pipeline demo: spec.conduits[0].paths[0].path: "*.txt" mixes * with text; expected a whole segment`},
		{"two placeholders", "/corpus/private/{owner}/**", "/corpus/private/{owner}{id}/**", `"/corpus/private/{`,
			`Pipeline demo: spec.conduits[0].paths[0].path: "{owner}{id}" has two placeholders; expected at most one in a segment; put a / between them`},
		{"two placeholders of a key", `"profile:{owner}"`, `"profile:{owner}{id}"`, `"profile:{owner}{id`,
			`Pipeline demo: spec.conduits[1].paths[0].path: "profile:{owner}{id}" has two placeholders with nothing between them; put a : between them`},
		{"placeholder twice", "/corpus/private/{owner}/**", "/corpus/{owner}/{owner}/**", `"/corpus/{owner}/{`,
			`Pipeline demo: spec.conduits[0].paths[0].path[1]: "owner" is listed twice; keep one of them`},
		{"unmatched brace", "/corpus/private/{owner}/**", "/corpus/private/{owner}/}/**", `"/corpus/private/{`,
			`Pipeline demo: spec.conduits[0].paths[0].path: "/corpus/private/{owner}/}/**" has an unmatched brace`},
		{"bad placeholder", "/corpus/private/{owner}/**", "/corpus/{a b}/{owner}/**", `"/corpus/{a b}/{ow`,
			`Pipeline demo: spec.conduits[0].paths[0].path: {a b} is not a placeholder; expected letters, digits and underscores`},
		{"expected task", "- task: worker", "- task: wroker", "wroker",
			`Pipeline demo: spec.expect[0].task: "wroker" is not one of the pipeline's tasks; did you mean "worker"?`},
		{"expected parameter missing", "says: home, parameters: [user, region]", "says: home, parameters: [user]",
			"[user]}",
			`Pipeline demo: spec.expect[0].from.parameters: parameter "region" of task worker gets no value`},
		{"expected parameter unknown", "says: home, parameters: [user, region]",
			"says: home, parameters: [user, region, usr]", "usr]}",
			`Pipeline demo: spec.expect[0].from.parameters[2]: task worker has no parameter "usr"; did you mean "user"?`},
		{"expected attributes", "conduit: population, says: home", "conduit: principals/alice, says: attribute",
			"principals/alice, says",
			`Pipeline demo: spec.expect[0].from.conduit: "principals/alice" says the attributes of a principal, which give no instances; name what a FactSource says`},
		{"variable name", "{name: HOME,", "{name: HO-ME,", "HO-ME, value: $(BI",
			`Task reader: spec.environment[0].name: "HO-ME" is not a variable name; expected letters, digits and underscores`},
		{"variable twice", "{name: FAULT, value: none}", "{name: FAULT, value: none}\n    - {name: FAULT}", "FAULT}",
			`Pipeline demo: spec.variables[1].name: "FAULT" is given twice; keep one of them`},
		{"tuple of another length", "[\"127.0.1.0/24\", de]", "[\"127.0.1.0/24\"]", `["127.0.1.0/24"]`,
			`FactSource regions: spec.inline[0].tuples[1]: the number of its values is 1; that of the first tuple of prefix is 2`},
		{"tuple value", "[\"127.0.1.0/24\", de]", "[\"127.0.1.0/24\", true]", "true]",
			`FactSource regions: spec.inline[0].tuples[1][1]: expected a text, a whole number of 64 bits or a time, got the truth value true; put a text in quotes`},
		{"tuple is no list", "[\"127.0.1.0/24\", de]", "de", "de",
			`FactSource regions: spec.inline[0].tuples[1]: expected a list of values, got the text "de"; write it as ["alice", 17]`},
		{"number of 65 bits", "[\"127.0.1.0/24\", de]", "[\"127.0.1.0/24\", 99999999999999999999]",
			"999999999999999999",
			`FactSource regions: spec.inline[0].tuples[1][1]: expected a text, a whole number of 64 bits or a time, got the number 99999999999999999999; put a text in quotes`},
		{"no source", "  file:\n    path: /facts/population.jsonl", "  {}", "{}",
			`FactSource population: spec: the source is missing; expected file, redis, http or inline`},
		{"two sources", "    path: /facts/population.jsonl", "    path: /facts/population.jsonl\n  inline: []", "[]",
			`FactSource population: spec.inline: file and inline are given; expected one; make an object of each of them`},
		{"public key", "00000000000000000000000000000000000000000000000000000000000000ff", "ssh-ed25519", "ssh-ed25519",
			`Principal alice: spec.publicKey: "ssh-ed25519" is not an Ed25519 public key; expected 64 hexadecimal digits`},
		{"policy text", "      read   :- sKeyIs(owner).", "      read   :- sKeyls(owner).", "sKeyls(owner).",
			"Policy private: spec.text: unknown predicate `sKeyls`; did you mean sKeyIs?"},
		{"policy text in one line", `"policy everyone { read :- true. }"`, `policy everyone { read :- ture(1). }`,
			"ture(1). }",
			"Policy everyone: spec.text: unknown predicate `ture`; if it is a fact, say whose: `\"conduit\" says ture(…)`"},
		{"policy name", "policy private(owner)", "policy privat(owner)", "|",
			`Policy private: spec.text: the text declares policy privat; expected private, after metadata.name; make metadata.name and the text agree`},
		{"too long", "name: FAULT, value: none", "name: FAULT, value: " + strings.Repeat("x", 32769),
			"xxxxxxxxxxxxxxxxxx",
			`Pipeline demo: spec.variables[0].value: the text has 32769 bytes; at most 32768 are allowed`},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := valid(t)
			if strings.Count(text, test.old) == 0 {
				t.Fatalf("%q is not in the valid manifest", test.old)
			}
			text = strings.Replace(text, test.old, test.new, 1)
			err := check(text)
			if err == nil {
				t.Fatal("no error")
			}
			place, message, _ := strings.Cut(err.Error(), ": ")
			if diff := cmp.Diff(test.want, message); diff != "" {
				t.Error(diff)
			}
			if rest := textAt(text, place); !strings.HasPrefix(rest, test.at) || test.at == "" {
				t.Errorf("%s is at %.20q, want %q", place, rest, test.at)
			}
		})
	}
}

// textAt returns the text at a place such as "f:3:7".
func textAt(text, place string) string {
	var line, column int
	if _, err := fmt.Sscanf(place, "f:%d:%d", &line, &column); err != nil {
		return err.Error()
	}
	return strings.Split(text, "\n")[line-1][column-1:]
}

func TestKeyMayHaveTwoPlaceholders(t *testing.T) {
	if err := check(strings.Replace(valid(t), `"profile:{owner}"`, `"profile:{owner}:{region}"`, 1)); err != nil {
		t.Error(err)
	}
}

// Each of these mistakes causes several errors, all of them correct.
func TestErrorsWithConsequences(t *testing.T) {
	for _, test := range []struct {
		name, old, new string
		want           []string
	}{
		{"duplicate object", "  name: everyone\nspec:\n  text: \"policy everyone",
			"  name: private\nspec:\n  text: \"policy private", []string{
				`Policy private: metadata.name: the object is given twice; the first is at f:1:1; rename or remove one of them`,
			}},
		{"duplicate conduit", "name: profiles\n", "name: documents\n", []string{
			`conduit "documents" is given twice; rename or remove one of them`,
			`spec.reads[1]: pipeline demo has no conduit "profiles"`,
			`spec.writes[0]: pipeline demo has no conduit "profiles"`,
		}},
		{"pipe from nowhere", "from: reader", "from: redaer", []string{
			`spec.conduits[2].from: "redaer" is not one of the pipeline's tasks; did you mean "reader"?`,
			`spec.writes[0]: "queries" begins at task redaer in pipeline demo`,
		}},
		{"pipe to itself", "      to: worker", "      to: reader", []string{
			`spec.conduits[2].to: the conduit begins and ends at "reader"; expected another task`,
			`spec.reads[2]: "queries" ends at task reader in pipeline demo`,
		}},
		{"too many pipes", "    - name: web\n",
			"    - {name: more, kind: pipe, slots: 32, from: reader, to: worker, policy: {name: everyone}}\n" +
				"    - {name: most, kind: pipe, slots: 32, from: reader, to: worker, policy: {name: everyone}}\n    - name: web\n", []string{
				`spec.conduits[4].slots: the pipeline has 68 pipes; at most 64 are possible`,
			}},
		{"too many channels", "    - name: web\n",
			"    - {name: more, kind: channel, slots: 32, from: reader, to: worker, policy: {name: everyone}}\n" +
				"    - {name: most, kind: channel, from: reader, to: worker, policy: {name: everyone}}\n    - name: web\n",
			[]string{
				`spec.conduits[4].slots: the pipeline has 33 channels; at most 32 are possible`,
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := check(strings.Replace(valid(t), test.old, test.new, 1))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in\n%v", want, err)
				}
			}
		})
	}
}

// All errors of all files come at once, in the order of the files.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := Parse(
		Source{Name: "a.yaml", Text: "kind: [\n"},
		Source{Name: "b.yaml", Text: strings.Replace(strings.Replace(valid(t), "run: Once", "run: Twice", 1),
			"Principal", "Prince", 1)},
		Source{Name: "c.yaml", Text: "# nothing\n---\n---\nkind: Task\n"},
	).Bundle()
	var all Errors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	var places []string
	for _, one := range all {
		places = append(places, one.Position.String()+" "+one.Field)
	}
	want := []string{"a.yaml:1 ", "b.yaml:40:7 kind", "b.yaml:54:8 spec.run", "c.yaml:4:1 apiVersion",
		"c.yaml:4:1 metadata", "c.yaml:4:1 spec"}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Error(diff)
	}
}

func TestHostileYAML(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: a, labels: {a: &x0 [y,y,y,y,y,y,y,y,y,y]")
	for i := range 9 {
		bomb.WriteString(", b: &x" + string(rune('1'+i)) + " [" + strings.Repeat("*x"+string(rune('0'+i))+",", 9) + "]")
	}
	bomb.WriteString("}}\nspec: {inline: *x9}\n")
	for name, text := range map[string]string{
		"aliases of aliases": bomb.String(),
		"alias of itself":    "apiVersion: shai.dev/v1alpha1\nkind: Task\nmetadata: &a {name: b, labels: *a}\n",
		"deep nesting":       strings.Repeat("[", 20000),
		"no UTF-8":           "kind: \xff\xfe",
		"NUL":                "kind: \"\\0\"",
		"binary tag":         "apiVersion: shai.dev/v1alpha1\nkind: Principal\nmetadata: {name: !!binary /w==}\nspec: {publicKey: a}\n",
		"tab":                "kind:\n\tx: y\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := check(text); err == nil {
				t.Error("no error")
			}
		})
	}
}
