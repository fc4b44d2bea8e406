// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// rangeDefinition is a custom resource with a rule across its fields.
const rangeDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ranges.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {plural: ranges, singular: range, kind: Range}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            description: What lies between.
            type: object
            required: [low, high]
            properties:
              low: {type: integer, minimum: 0}
              high: {type: integer}
            x-kubernetes-validations: [{rule: "self.low <= self.high", message: low is above high}]
`

var ranges = schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "ranges"}

// runKubectl runs the program as kubectl, with text as its input.
func runKubectl(t *testing.T, d *devcluster, input string, arguments ...string) result {
	t.Helper()
	command := d.command(append([]string{"kubectl"}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	return outcome(command)
}

// useRanges makes the custom resource known, and a namespace to use it in. It waits until
// the API server publishes the kind's schema, which it does a moment after it serves the
// kind.
func useRanges(t *testing.T) (d *devcluster, objects dynamic.ResourceInterface, client *kubernetes.Clientset,
	in string) {
	t.Helper()
	d, config := useShared(t)
	if got := runKubectl(t, d, rangeDefinition, "apply", "-f", "-"); got.code != 0 {
		t.Fatal(got)
	}
	if got := runKubectl(t, d, "", "wait", "--for", "condition=Established", "crd/ranges.example.dev", "--timeout",
		patience.String()); got.code != 0 {
		t.Fatal(got)
	}
	eventually(t, "the schema is published", func() error {
		if got := runKubectl(t, d, "", "explain", "range.spec"); got.code != 0 {
			return errors.New(got.String())
		}
		return nil
	})
	client = clientOf(t, config)
	in = namespace(t, client)
	return d, dynamicOf(t, config).Resource(ranges).Namespace(in), client, in
}

func dynamicOf(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func someRange(name string, low, high int64, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.dev/v1", "kind": "Range", "spec": map[string]any{"low": low, "high": high},
	}}
	made.SetName(name)
	made.SetOwnerReferences(owners)
	return made
}

func TestCustomResourcesAreValidated(t *testing.T) {
	d, objects, _, _ := useRanges(t)
	tests := []struct {
		name      string
		low, high int64
		wrong     string
	}{
		{"good", 1, 2, ""},
		{"against-the-schema", -1, 2, "should be greater than or equal to 0"},
		{"against-the-rule", 3, 2, "low is above high"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := objects.Create(t.Context(), someRange(test.name, test.low, test.high), creating)
			if test.wrong == "" && err != nil {
				t.Error(err)
			}
			if test.wrong != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("got %v, want a refusal with %q", err, test.wrong)
			}
		})
	}
	contains(t, runKubectl(t, d, "", "explain", "range.spec").stdout, "What lies between.")
}

// Both owner and dependent may be of kinds that came up a moment ago.
func TestDependentsGoWithTheirOwner(t *testing.T) {
	_, objects, client, in := useRanges(t)
	owner, err := objects.Create(t.Context(), someRange("owner", 1, 2), creating)
	if err != nil {
		t.Fatal(err)
	}
	reference := metav1.OwnerReference{APIVersion: "example.dev/v1", Kind: "Range", Name: "owner", UID: owner.GetUID()}
	if _, err := objects.Create(t.Context(), someRange("dependent", 1, 2, reference), creating); err != nil {
		t.Fatal(err)
	}
	noted := note("dependent")
	noted.OwnerReferences = []metav1.OwnerReference{reference}
	if _, err := client.CoreV1().ConfigMaps(in).Create(t.Context(), noted, creating); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(in).Create(t.Context(), note("free"), creating); err != nil {
		t.Fatal(err)
	}
	if err := objects.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the custom dependent is gone", func() error {
		_, err := objects.Get(t.Context(), "dependent", getting)
		return isGone(err)
	})
	eventually(t, "the built-in dependent is gone", func() error {
		_, err := client.CoreV1().ConfigMaps(in).Get(t.Context(), "dependent", getting)
		return isGone(err)
	})
	if _, err := client.CoreV1().ConfigMaps(in).Get(t.Context(), "free", getting); err != nil {
		t.Errorf("what had no owner: %v", err)
	}
}

func isGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = errors.New("it is there still")
	}
	return err
}

func TestADeletedNamespaceEmpties(t *testing.T) {
	_, objects, client, in := useRanges(t)
	if _, err := objects.Create(t.Context(), someRange("inside", 1, 2), creating); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), in, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() error {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), in, getting)
		return isGone(err)
	})
	if _, err := objects.Get(t.Context(), "inside", getting); !apierrors.IsNotFound(err) {
		t.Errorf("an object in the deleted namespace: %v", err)
	}
}

// Users wait for the usual namespaces and accounts with up, not after it.
func TestANewOneIsFurnished(t *testing.T) {
	d := newDevcluster(t)
	d.up(t)
	client := clientOf(t, d.administrator(t))
	for _, name := range []string{"default", "kube-system"} {
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), name, getting); err != nil {
			t.Error(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "first"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, creating); err != nil {
		t.Errorf("the first Pod is refused: %v", err)
	}
	version, err := client.Discovery().ServerVersion()
	if status, _ := d.status(t); err != nil || version.GitVersion != status.Version || version.Major != "1" ||
		version.Minor == "" {
		t.Errorf("the API server's version is %+v (%v), status says %s", version, err, status.Version)
	}
}

func TestALinkNamedKubectlIsKubectl(t *testing.T) {
	d, _ := useShared(t)
	link := filepath.Join(t.TempDir(), "kubectl")
	if err := os.Symlink(binary, link); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(link, "get", "namespaces", "--output", "name")
	command.Env = append(os.Environ(), "KUBECONFIG="+d.directory.Kubeconfig())
	if got := outcome(command); got.code != 0 || !strings.Contains(got.stdout, "namespace/default\n") {
		t.Error(got)
	}
	// The devcluster is only the fallback, and not the link's business.
	for _, command := range []*exec.Cmd{
		exec.Command(link, "get", "namespaces"),
		exec.Command(binary, "kubectl", "get", "namespaces"),
	} {
		command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(t.TempDir(), "none"),
			"SHAI_DEVCLUSTER="+string(d.directory))
		if got := outcome(command); got.code == 0 {
			t.Errorf("with another KUBECONFIG: %v", got)
		}
	}
	if got := runKubectl(t, d, "", "get", "namespaces"); got.code != 0 {
		t.Error(got)
	}
}

// All that follows the word is kubectl's, so flags of devcluster cannot come
// before it either; they must not be lost silently.
func TestKubectlComesFirst(t *testing.T) {
	d := newDevcluster(t)
	got := d.run("--directory", string(d.directory), "kubectl", "get", "-A", "pods")
	if got.code != 1 {
		t.Error(got)
	}
	contains(t, got.stderr, "first word", "$SHAI_DEVCLUSTER")
}
