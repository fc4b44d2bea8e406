// SPDX-License-Identifier: BSD-2-Clause

package manifest

import (
	"strings"
	"testing"
)

// asRead is a Policy as the API server gives it.
const asRead = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata:
  name: everyone
  namespace: search
  uid: 0b5c1f5e-3f0c-4f0e-9d0e-0f0a0b0c0d0e
  resourceVersion: "4711"
  generation: 3
  creationTimestamp: "2026-03-01T12:00:00Z"
  labels: {app: search}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
  finalizers: [shai.dev/release]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b, controller: true}]
  managedFields: [{manager: kubectl, operation: Apply, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:text: {}}}}]
spec:
  text: "policy everyone { read :- true. }"
  mode: Audit
  revisionHistoryLimit: 3
  rollout: {steps: [{members: 1, pauseSeconds: 30}, {members: 50%}]}
status:
  stableRevision: everyone-0123456789
  conditions: [{type: Ready, status: "True", reason: Stable}]
`

// The fields that Kubernetes and the operator add neither cause errors nor change the
// bundle.
func TestObjectsAsReadFromKubernetes(t *testing.T) {
	got := bundle(t, asRead)
	plain := bundle(t, "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: everyone}\n"+
		"spec: {text: \"policy everyone { read :- true. }\", mode: Audit}\n")
	if got.Hash() != plain.Hash() {
		t.Errorf("the hashes differ:\n%s%s", got.Canonical(), plain.Canonical())
	}
	policy := got.Policies()[0].Spec
	if policy.RevisionHistoryLimit != 3 || len(policy.Rollout.Steps) != 2 || policy.Rollout.Steps[0].Members != "1" {
		t.Errorf("read as %+v", policy)
	}
	if again, err := Restore(got.Canonical()); err != nil || again.Policies()[0].Spec.Mode != "Audit" {
		t.Errorf("restored %v: %v", again, err)
	}
}

// The mode changes what is enforced; how a change is rolled out does not.
func TestRolloutIsNotPartOfTheBundle(t *testing.T) {
	text := valid(t)
	want := bundle(t, text).Hash()
	for _, change := range []struct {
		old, new string
		differs  bool
	}{
		{"tasks: [reader, worker]", "tasks: [reader, worker]\n  pool: other", false},
		{"tasks: [reader, worker]", "tasks: [reader, worker]\n  rollout: {paused: true, steps: [{members: 1}], limits: {denialsPercent: 5, minimumSessions: 20}}", false},
		{"policy everyone { read", "policy  everyone { read", true},
		{"policy everyone { read :- true. }\"", "policy everyone { read :- true. }\"\n  mode: Audit", true},
		{"policy everyone { read :- true. }\"", "policy everyone { read :- true. }\"\n  mode: Enforce", false},
		{"  run: Once", "  run: Once\n  resources: {memoryMegabytes: 64}", true},
	} {
		if strings.Count(text, change.old) == 0 {
			t.Fatalf("%q is not in the valid manifest", change.old)
		}
		b := bundle(t, strings.Replace(text, change.old, change.new, 1))
		if (b.Hash() != want) != change.differs {
			t.Errorf("%q: the hash differs: %v", change.new, b.Hash() != want)
		}
		resolved, err := b.Resolve("demo", map[string]string{"BIN": "/bin", "STORE": "/s"})
		if err != nil || resolved.Pipeline.Spec.Rollout != nil || resolved.Pipeline.Spec.Pool != "" {
			t.Errorf("%q: a changed rollout would restart the pipeline: %+v, %v", change.new, resolved, err)
		}
	}
}

func TestLongestNames(t *testing.T) {
	name := strings.Repeat("n", 63)
	text := "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: " + name + "}\nspec: {inline: []}\n"
	if again, err := Restore(bundle(t, text).Canonical()); err != nil || again.FactSources()[0].Metadata.Name != name {
		t.Error(err)
	}
	if err := check(strings.Replace(text, name, name+"n", 1)); err == nil {
		t.Error("a name of 64 bytes was accepted")
	}
}

func TestErrorsOfNewFields(t *testing.T) {
	source := func(spec string) string {
		return "apiVersion: shai.dev/v1alpha1\nkind: FactSource\nmetadata: {name: a}\nspec: " + spec + "\n"
	}
	policy := func(more string) string {
		return "apiVersion: shai.dev/v1alpha1\nkind: Policy\nmetadata: {name: a}\nspec: {text: \"policy a { read :- true. }\", " + more + "}\n"
	}
	principal := func(attributes string) string {
		return "apiVersion: shai.dev/v1alpha1\nkind: Principal\nmetadata: {name: a}\nspec: {publicKey: \"" +
			strings.Repeat("0", 64) + "\", attributes: " + attributes + "}\n"
	}
	task := func(resources string) string {
		return policy("mode: Enforce") + "---\napiVersion: shai.dev/v1alpha1\nkind: Task\nmetadata: {name: a}\n" +
			"spec: {command: [/bin/true], taint: {name: a}, resources: " + resources + "}\n"
	}
	for _, test := range []struct{ text, want string }{
		{policy("mode: enforce"), `spec.mode: "enforce" is not allowed; expected Audit, Warn or Enforce; did you mean "Enforce"?`},
		{policy("revisionHistoryLimit: -1"), `-1 is out of range; expected 0 to 100`},
		{policy("revisionHistoryLimit: 0"), ``},
		{policy("rollout: {steps: [{members: some}]}"),
			`spec.rollout.steps[0].members: expected 1 to 256 members or a share such as 25%, got the text "some"`},
		{policy("rollout: {steps: [{members: 101%}]}"), `got the text "101%"`},
		{policy("rollout: {steps: [{members: 100%}]}"), ``},
		{policy("rollout: {steps: [{members: 256}]}"), ``},
		{policy("rollout: {steps: [{members: 257}]}"), `expected 1 to 256 members`},
		{policy("rollout: {steps: []}"), ``},
		{principal("[{name: team, value: a}, {name: team, value: b}]"),
			`spec.attributes[1].name: "team" is given twice; keep one of them`},
		{principal("[{name: team, value: a}, {name: unit, value: a}]"), ``},
		{task("{openFiles: 255}"), `spec.resources.openFiles: 255 is out of range; expected 256 to 1048576`},
		{task("{memoryMegabytes: 15}"), `15 is out of range; expected 16 to 1048576`},
		{task("{processes: 63}"), `spec.resources.processes: 63 is out of range; expected 64 to 1048576`},
		{task("{memoryMegabytes: 16, openFiles: 256, processes: 64}"), ``},
		{policy("rollout: {steps: [{pauseSeconds: 3}]}"),
			`members: the field is missing; expected a number of members or a share such as 25%`},
		{source("{redis: {socket: /s, keys: [{pattern: \"friends:{user}\", conduit: \"friends/{user}\", says: friend}]}}"), ``},
		{source("{redis: {socket: $(REDIS_SOCKET), stream: {key: facts}}}"), ``},
		{source("{redis: {socket: /s}}"), `spec.redis: keys and stream are missing; expected one of them`},
		{source("{redis: {socket: /s, stream: {key: a}, keys: [{pattern: a, conduit: b, says: c}]}}"),
			`spec.redis.stream: keys and stream are both given; expected one`},
		{source("{redis: {socket: s, stream: {key: a}}}"),
			`spec.redis.socket: "s" does not begin with /; expected an absolute path`},
		{source("{redis: {socket: /s, keys: [{pattern: \"friends:{user}\", conduit: \"friends/{usr}\", says: friend}]}}"), `{usr} stands for nothing here; did you mean "user"?`},
		{source("{redis: {socket: /s, keys: [{pattern: \"{a}{b}\", conduit: c, says: d}]}}"),
			`put text between {a} and what follows`},
		{source("{redis: {socket: /s, keys: [{pattern: \"{a\", conduit: c, says: d}]}}"),
			`expected {name} with its closing brace`},
		{source("{http: {url: \"https://facts.example/a\", caFile: /ca.pem}}"), ``},
		{source("{http: {url: \"ftp://facts.example/a\"}}"),
			`is not a URL; expected a form such as https://facts.example/friends`},
		{source("{http: {url: \"https://u:p@facts.example/\"}}"), `the URL contains a user name or password`},
		{source("{http: {url: \"https://facts.example/\", intervalSeconds: 0}}"),
			`0 is out of range; expected 1 to 86400`},
		{source("{http: {url: \"https://facts.example/\", caFile: ca.pem}}"), `"ca.pem" does not begin with /`},
	} {
		err := check(test.text)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s\n%v", test.text, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s\ngot %v\nwant %s", test.text, err, test.want)
		}
	}
}
