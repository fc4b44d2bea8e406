// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/offline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
)

// standInTheFile compares the places in a derivation, and removes them: those of a monitor are in the text
// of the named policy, those of manifests in their file.
func standInTheFile(t *testing.T, got, want *api.Derivation) {
	t.Helper()
	if want.Source != "" {
		name, in, _ := strings.Cut(want.Source, ":")
		if name == "dropbox" { // quotes are escaped in it, so its places are none of the file
			if got.Source != want.Source {
				t.Errorf("%s: got %s", want.Source, got.Source)
			}
		} else {
			text := textAt(t, pipelinetest.Bare, strings.TrimPrefix(got.Source, "bare.yaml:"))
			if !strings.HasPrefix(text, textAt(t, policyText(t, name), in)) {
				t.Errorf("%s: %s is at %q", want.Source, got.Source, text)
			}
		}
	}
	got.Source, want.Source = "", ""
	for i := range min(len(got.Because), len(want.Because)) {
		standInTheFile(t, &got.Because[i], &want.Because[i])
	}
}

// textAt returns the rest of the line at a place, "line:column".
func textAt(t *testing.T, text, place string) string {
	t.Helper()
	var line, column int
	if _, err := fmt.Sscanf(place, "%d:%d", &line, &column); err != nil {
		t.Fatalf("%q: %v", place, err)
	}
	return strings.Split(text, "\n")[line-1][column-1:]
}

// policyText returns the text of a policy of the bare pipeline.
func policyText(t *testing.T, name string) string {
	t.Helper()
	bundle, err := manifest.Parse(manifest.Source{Name: "bare.yaml", Text: pipelinetest.Bare}).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range bundle.Policies() {
		if one.Metadata.Name == name {
			return one.Spec.Text
		}
	}
	t.Fatalf("there is no policy %q", name)
	return ""
}

// Without a monitor, manifests give the answers that a monitor gives which has them in force.
func TestManifestsAloneGiveTheMonitorsAnswers(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	project, err := offline.Load(t.Context(), []manifest.Source{{Name: "bare.yaml", Text: pipelinetest.Bare}},
		offline.Options{Data: m.options.Data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := project.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(project.Missing) > 0 {
		t.Errorf("missing: %q", project.Missing)
	}
	for _, document := range pipelinetest.BareDocuments {
		for _, question := range []api.Question{
			{Principal: "alice", Region: "de"}, {Principal: "bob", Region: "de"}, {Principal: "carol", Region: "us"},
			{Task: "collector"}, {Task: "collector", Access: "write"}, {Principal: "alice", Access: "write"},
		} {
			question.Conduit = document
			want, err := m.Explain(t.Context(), question)
			if err != nil {
				t.Fatal(err)
			}
			got, err := project.Explain(question, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			got.Class, want.Class = 0, 0 // numbers of two catalogs
			standInTheFile(t, &got.Derivation, &want.Derivation)
			if diff := cmp.Diff(want, got.Explanation); diff != "" {
				t.Errorf("%+v:\n%s", question, diff)
			}
		}
		request := api.ReadersRequest{Conduit: document, Limit: 10}
		want, err := m.Readers(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		got, err := project.Who(t.Context(), request, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Readers, got.Readers.Readers); diff != "" {
			t.Errorf("readers of %s:\n%s", document, diff)
		}
	}
}
