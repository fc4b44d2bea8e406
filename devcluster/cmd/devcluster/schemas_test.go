// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: some}
spec:
  replicas: 1
  selector: {matchLabels: {app: some}}
  template:
    metadata: {labels: {app: some}}
    spec:
      containers:
      - name: main
        image: some
        ports: [{name: http, containerPort: 80}]
        readinessProbe: {httpGet: {path: /, port: http}}
        resources: {requests: {cpu: 100m, memory: 1Mi}, limits: {cpu: 1}}
      volumes: [{name: scratch, emptyDir: {}}]
`

const aRange = `
apiVersion: example.dev/v1
kind: Range
metadata: {name: some}
spec: {low: 1, high: 2}
`

// kubeconform is the path of that program, which go tool builds.
func kubeconform(t *testing.T) string {
	t.Helper()
	command := exec.Command("go", "-C", filepath.Join("..", "..", "tools"), "tool", "-n", "kubeconform")
	got := outcome(command)
	if got.code != 0 {
		t.Fatal(got)
	}
	return strings.TrimSpace(got.stdout)
}

func TestSchemasServeKubeconform(t *testing.T) {
	d, _, _, _ := useRanges(t)
	folder := filepath.Join(t.TempDir(), "schemas")
	contains(t, d.must(t, "schemas", folder).stderr, "schemas to "+folder)
	program := kubeconform(t)
	tests := []struct{ name, manifest, wrong string }{
		{"a good Deployment", deployment, ""},
		{"a field misspelt, far down", strings.Replace(deployment, "image:", "imaeg:", 1), "imaeg"},
		{"a wrong type", strings.Replace(deployment, "replicas: 1", `replicas: "1"`, 1), "/spec/replicas"},
		{"a field missing", strings.Replace(deployment, "  selector: {matchLabels: {app: some}}\n", "", 1), "selector"},
		{"a good custom resource", aRange, ""},
		{"a value below the minimum", strings.Replace(aRange, "low: 1", "low: -1", 1), "/spec/low"},
		{"an unknown field", strings.Replace(aRange, "low:", "width: 3, low:", 1), "width"},
		{"a custom resource definition", rangeDefinition, ""},
		{"an unknown kind", strings.Replace(aRange, "Range", "Distance", 1), "could not find schema"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, []byte(test.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			got := outcome(exec.Command(program, "-schema-location",
				filepath.Join(folder, "{{ .ResourceKind }}{{ .KindSuffix }}.json"), file))
			if (got.code != 0) != (test.wrong != "") || !strings.Contains(got.stdout, test.wrong) {
				t.Errorf("want a complaint with %q\n%v", test.wrong, got)
			}
		})
	}
}

func TestSchemasNeedsADevcluster(t *testing.T) {
	d := newDevcluster(t)
	got := d.run("schemas", filepath.Join(t.TempDir(), "schemas"))
	if got.code != 1 {
		t.Error(got)
	}
	contains(t, got.stderr, string(d.directory), "not running", "devcluster up")
}
